"""The report of a run; the only package that writes HTML.

`page` writes the report from these parts:

| module | part |
|---|---|
| `experiments` | arms of the run file, grouped by seed |
| `rows`, `scores_csv`, `text_table` | all scores as rows, written as CSV and as plain text |
| `score_table` | scores by task, metric and experiment |
| `bootstrap` | intervals of scores over rows |
| `answers` | a page per task: right and wrong answers, confusion matrix |
| `comparability` | whether scores may be compared with the paper's |
| `published_scores`, `paper_tables` | the paper's scores, and its tables with our scores |
| `ordering`, `order_statistics` | whether the order of the paper's rows holds in the run |
| `row_states` | the experiment and state of each row of the paper |
| `best_checkpoints` | best kept checkpoints compared with the last |
| `loss_curves`, `charts` | training losses as inline SVG |
| `corpus` | drop reasons and languages of C4, samples of dropped text |
| `corpus_page` | a page of both corpus and vocabulary |
| `training_rows`, `vocabulary` | rows before and after corruption; pieces |
| `decisions` | settings, and choices where paper and code disagree |
| `links` | files behind a score |
| `lineage_page`, `render_lineage`, `stage_graph` | the page that traces them, and its picture |
| `cost` | time, memory and machines, printed on demand |
| `runs_page` | the page of all runs, written on demand |
| `templates`, `content_security` | what all pages share |

To add a part: a module that returns values for the template, and a section in `report.html.j2`.
"""
