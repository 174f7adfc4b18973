"""All runs as rows: of the working tree, of the committed studies, of the revisions of git.

| module | question |
|---|---|
| `terms` | which values does the user ask for: the grammar of ``KEY:gt:VALUE``, and what matches |
| `row` | which values does a row have, and under which keys? |
| `compute` | which operations and tokens did a training take, by its settings? |
| `read` | which rows does a run have, by its manifests and scores? |
| `record_facts` | when, how long and on which machine did the jobs of a row run? |
| `cache` | which files have not changed since their rows were read? |
| `states` | which runs are in the working tree, in studies and at revisions? |
| `used_by` | which jobs depend on a file? |
| `search` | the whole answer |
| `table` | the rows that match, sorted, as text, CSV and JSON |

`report/runs_page.py` writes the page of all runs, and `cli/runs.py` has the command.
"""
