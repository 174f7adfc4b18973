"""The model card: the Hub's metadata as YAML, then Markdown.

Every number and name is from a record. Sentences only state facts of the records, or that a fact is
not recorded; a run says nothing about uses without a score.

Source: the Hub's specification of model cards.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from t5repro import __version__
from t5repro.export import ai_act
from t5repro.export.corpus_facts import RULE
from t5repro.export.facts import code_hash, machine_of, manifest_hash, start_of
from t5repro.hub.model_facts import ModelFacts, pretraining_corpus
from t5repro.report.rows import ScoreRow
from t5repro.report.titles import AVERAGE, format_score, format_sd, metric_title

# The Hub's task of an encoder-decoder, and its kind, which transformers 4 had as a task.
TASK, TASK_KIND = "text-generation", "text2text-generation"
METRIC_IDS = {  # metrics that have another name on the Hub
    "matthews_corrcoef": "matthews_correlation",
    "pearson_corrcoef": "pearsonr",
    "spearman_corrcoef": "spearmanr",
    "em": "exact_match",
    "bleu": "sacrebleu",
}
UNKNOWN = "not recorded"
LINE_CHARS = 1000  # no folds: a value is on one line

USE = """\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "."  # this folder, or its name on the Hub
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
inputs = tokenizer([{example}], return_tensors="pt", padding=True, truncation=True)
print(tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True))
```
"""


def model_card(facts: ModelFacts, hashes: Mapping[str, str], licence: str | None) -> str:
    """Return the text of ``README.md``.

    Args:
        facts: the model.
        hashes: file of the folder -> SHA-256.
        licence: licence of the weights; None if nobody stated one.
    """
    header = yaml.safe_dump(
        metadata(facts, licence), sort_keys=False, allow_unicode=True, width=LINE_CHARS
    )
    sections = (
        [f"# {facts.name}", _introduction(facts)],
        ["## Use", *_use(facts)],
        ["## Training data", *_data(facts)],
        ["## Public summary of training content", *_summary(facts)],
        ["## Training", *_training(facts)],
        ["## Scores", *_scores(facts)],
        ["## Intended use and limits", _bullets(_limits(facts, licence))],
        ["## Provenance", *_provenance(facts, hashes)],
    )
    blocks = [block.rstrip("\n") for section in sections for block in section]
    return f"---\n{header}---\n\n" + "\n\n".join(blocks) + "\n"


def metadata(facts: ModelFacts, licence: str | None) -> dict[str, Any]:
    """Return the Hub's metadata; keys without a recorded value are absent."""
    results = [_result(facts, row) for row in _defined(facts.scores)]
    values = {
        "language": facts.languages,
        "license": licence,
        "library_name": "transformers",
        "pipeline_tag": TASK,
        "base_model": facts.base_model,
        "tags": ["t5", TASK_KIND, "t5repro"],
        "datasets": facts.hub_datasets,
        "metrics": list(dict.fromkeys(result["metrics"][0]["type"] for result in results)),
        "model-index": [{"name": facts.name, "results": results}] if results else None,
    }
    return {name: value for name, value in values.items() if value}


def _defined(rows: Iterable[ScoreRow]) -> list[ScoreRow]:
    return [row for row in rows if row.value is not None]


def _result(facts: ModelFacts, row: ScoreRow) -> dict[str, Any]:
    """Return a score as an entry of ``model-index``; its revision is the hash of the examples.

    Without it, a task's name would claim the rows of the benchmark of that name.
    """
    kind = f"t5repro-{facts.run.name}-{row.task}"
    dataset: dict[str, Any] = {"name": f"{row.task} of the run {facts.run.name}", "type": kind}
    if row.metric != AVERAGE:
        origin = facts.origins.get(row.task, UNKNOWN)
        dataset["name"] = f"{row.task}: {row.examples} rows, origin: {origin}"
        dataset["split"] = facts.lengths["split"]
        dataset |= _examples_hash(facts, row.task)
        dataset["args"] = {"rows": row.examples}
    return {
        "task": {"type": TASK},
        "dataset": dataset,
        "metrics": [
            {
                "type": METRIC_IDS.get(row.metric, row.metric),
                "name": metric_title(row.metric),
                "value": row.value,
            }
        ],
    }


def _examples_hash(facts: ModelFacts, task: str) -> dict[str, str]:
    """Return the revision of a task's evaluated examples; nothing if no file has its name."""
    inputs = facts.prediction.inputs if facts.prediction else ()
    # The folder of a task's examples has its name: tasks/TASK/SPLIT.jsonl.
    hashes = [file.sha256 for file in inputs if file.path.split("/")[-2:-1] == [task]]
    return {"revision": hashes[0]} if hashes else {}


def _introduction(facts: ModelFacts) -> str:
    parameters = facts.training.counters.get("parameters", 0)
    return (
        f"A T5 with {parameters:,} parameters: the weights of the stage `{facts.training.rule}` of "
        f"the arm `{facts.arm}` of the run `{facts.run.name}`, written by t5repro {__version__}. "
        "Every number on this page is from the manifests and records of that run."
    )


def _use(facts: ModelFacts) -> list[str]:
    # An example with the prefix of a task that the model knows; without tasks, an empty one.
    first = next(iter(facts.prefixes.values()), "")
    blocks = [USE.format(example=json.dumps(f"{first}…", ensure_ascii=False))]
    if facts.prefixes:
        rows = [(task, f"`{prefix.strip()}`") for task, prefix in facts.prefixes.items()]
        blocks.append(_table(("task", "inputs begin with"), rows))
    if facts.lengths:
        blocks.append(
            f"The run cut inputs to {facts.lengths['inputs_length']} tokens, the end included "
            "(`model_max_length`), and answers have at most "
            f"{facts.lengths['max_decode_length']} (`max_new_tokens`). `generate` decodes greedily."
        )
    if facts.training.rule == "pretrain":
        objective = facts.training.settings["pretrain"]["objective"]
        blocks.append(f"The weights are those before fine-tuning; the objective is `{objective}`.")
    return blocks


def _data(facts: ModelFacts) -> list[str]:
    blocks = [
        _table(
            ("raw files", "origin", "licence"),
            [(source.files, source.origin, source.licence) for source in facts.sources],
        )
    ]
    # Counts are of the corpus that pre-training read; the vocabulary may have another.
    corpus = pretraining_corpus(facts.run)
    languages = corpus.counters.get("languages", {}) if corpus else {}
    rows = [
        (
            language,
            *(
                f"{languages[language].get(counter, 0):,}"
                for counter in ("train_pages", "train_characters", "validation_pages")
            ),
        )
        for language in facts.corpus_languages
        if language in languages
    ]
    if rows:
        blocks.append("Pre-training text, after cleaning and deduplication:")
        blocks.append(_table(("language", "pages", "characters", "held-out pages"), rows))
    if facts.tasks:
        drawn_examples = facts.training.counters.get("drawn", {})
        examples = facts.training.counters["examples"]
        blocks.append("Fine-tuning:")
        blocks.append(
            _table(
                ("task", "training examples", "examples drawn"),
                [
                    (task, f"{examples[task]:,}", f"{drawn_examples.get(task, 0):,}")
                    for task in facts.tasks
                ],
            )
        )
    return blocks


def _summary(facts: ModelFacts) -> list[str]:
    """Return the fields of the EU's summary that the manifests answer, and the open ones."""
    if not facts.run.of_rule(RULE):
        return ["The run has no corpus behind these weights."]
    # Without rows: a card is written where only the model and its manifests are.
    return [ai_act.NOTICE, ai_act.markdown_table(ai_act.summary_fields(facts.run, None))]


def _training(facts: ModelFacts) -> list[str]:
    rows = []
    for job in facts.run.of_rule("pretrain", "finetune"):
        counters, settings = job.counters, job.settings[job.rule]
        validation = counters.get("final_validation_loss")
        rows.append(
            (
                job.rule,
                f"{counters.get('steps', 0):,}",
                settings["batch_size"],
                _loss(counters.get("final_loss")),
                _loss(validation),
            )
        )
    columns = ("stage", "steps", "batch size", "final loss", "loss on held-out text")
    settings_text = yaml.safe_dump(
        dict(facts.training.settings), allow_unicode=True, width=LINE_CHARS
    )
    return [
        _table(columns, rows),
        f"All settings that the job `{facts.training.name}` received:",
        f"```yaml\n{settings_text}```",
    ]


def _loss(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _scores(facts: ModelFacts) -> list[str]:
    rows = _defined(facts.scores)
    if not rows:
        return ["The run has no scores of these weights."]
    # A model is one seed: its row and the mean over seeds are both shown.
    means = {(row.task, row.metric): row for row in facts.means}
    cells = []
    for row in rows:
        mean = means.get((row.task, row.metric))
        cells.append(
            (
                row.task,
                metric_title(row.metric),
                format_score(row.value),
                "–" if row.low is None else f"{format_score(row.low)} to {format_score(row.high)}",
                "–" if mean is None else format_score(mean.value) + format_sd(mean.sd),
                f"{format_score(row.baseline)} {row.baseline_kind}" if row.baseline_kind else "–",
                "–" if row.examples is None else row.examples,
                "–" if row.invalid is None else row.invalid,
            )
        )
    seeds = max((row.runs for row in facts.means), default=1)
    columns = (
        "task",
        "metric",
        "this model",
        "95 % interval",
        f"mean of {seeds} seeds ± standard deviation" if seeds > 1 else "mean of several seeds",
        "trivial baseline",
        "rows",
        "invalid answers",
    )
    return [
        f"On the split `{facts.lengths['split']}`; scores are on the scale of 100. The interval is "
        "the bootstrap over rows, from the report of the run.",
        _table(columns, cells),
    ]


def _limits(facts: ModelFacts, licence: str | None) -> list[str]:
    """Return the limits that follow from the records."""
    limits = []
    if facts.tasks:
        limits.append(f"The model was trained to answer inputs of: {', '.join(facts.tasks)}.")
    rows = _defined(facts.scores)
    limits.append(
        "The run contains no evaluation of any use but the scores above."
        if rows
        else "The run contains no evaluation of these weights."
    )
    if rows:
        limits.append(_scored_rows(facts, rows))
    # Scores at the trivial baseline are easily mistaken for results.
    weak = [
        f"{row.task} ({metric_title(row.metric)})"
        for row in rows
        if row.baseline is not None and row.value is not None and row.value <= row.baseline
    ]
    if weak:
        limits.append(f"No better than the trivial baseline: {', '.join(weak)}.")
    if any(row.runs > 1 for row in facts.means):
        limits.append("Other seeds of the same settings score differently: see the deviations.")
    if facts.corpus_languages:
        limits.append(f"Languages of the pre-training text: {', '.join(facts.corpus_languages)}.")
    if not facts.sources:
        limits.append("The run records no raw files behind these weights.")
    if not facts.hub_datasets:
        limits.append("No recorded origin of the data is a data set of the Hub.")
    # The Hub shows nothing for a missing licence, so the card says it.
    if licence is None:
        limits.append(
            "No licence of the weights was stated; the table of training data has those of the "
            "data."
        )
    return limits


def _scored_rows(facts: ModelFacts, scores: Iterable[ScoreRow]) -> str:
    """Return a sentence about number and origin of the rows behind the scores."""
    tasks_of_origin: dict[str, dict[str, str]] = {}
    for row in scores:
        if row.metric != AVERAGE:
            tasks = tasks_of_origin.setdefault(facts.origins.get(row.task, UNKNOWN), {})
            tasks[row.task] = f"{row.task} ({row.examples})"
    origins = (
        f"{', '.join(tasks.values())}, origin: {_cell(o)}" for o, tasks in tasks_of_origin.items()
    )
    return (
        f"Scored rows: {'; '.join(origins)}. The name of a task is that of its format: these are "
        "results of a benchmark only if its rows were scored."
    )


def _provenance(facts: ModelFacts, hashes: Mapping[str, str]) -> list[str]:
    job, start_record = facts.training, start_of(facts.training)
    differences = start_record.get("uncommitted")
    rows = [
        (
            "commit of the code",
            f"`{start_record['commit']}`" if start_record.get("commit") else UNKNOWN,
        ),
        ("uncommitted differences", f"`{differences}`" if differences else _no(start_record)),
        ("code of the job, SHA-256", f"`{code_hash(job)}`" if code_hash(job) else UNKNOWN),
        (f"`{facts.weights.path}`", f"`{facts.weights.sha256}`"),
        (f"`{job.manifest}`", f"`{manifest_hash(job)}`"),
        (f"`{facts.vocabulary.path}`", f"`{facts.vocabulary.sha256}`"),
        *((f"`{path}`", f"`{sha}`") for path, sha in machine_of(job).get("locks", {}).items()),
    ]
    # The start of a hash finds the file in any checkout, whatever its path there.
    start_of_hash = facts.weights.sha256[:12]
    return [
        _table(("fact", "value"), rows),
        "In a checkout of the run, this prints everything that the weights were made from, and "
        "compares all files with their hashes:",
        f"```\nt5repro trace {start_of_hash}\nt5repro verify\n```",
        "The files of this folder are a function of the weights, the vocabulary and the records:",
        _table(("file", "SHA-256"), [(name, f"`{sha}`") for name, sha in hashes.items()]),
    ]


def _no(start_record: Mapping[str, Any]) -> str:
    return "none" if start_record.get("commit") else UNKNOWN


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    """Return a value as a cell of Markdown: on one line, without markup of its own."""
    text = " ".join(str(value).split())
    # Origins are texts of the user: a bar or a tag would break the table.
    return text.replace("|", "\\|").replace("<", "&lt;") if text else "–"


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
