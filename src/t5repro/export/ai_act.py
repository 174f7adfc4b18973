"""The public summary of training content of Article 53(1)(d) of the EU's AI Act, as a draft.

The fields follow the Commission's template of 24 July 2025. A value is from manifests and
counts, or it is open: an open field says so by name, and only a file of answers fills it.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.errors import LineageError, SettingsError
from t5repro.export.corpus_facts import (
    CLEANED,
    Contents,
    contents_of,
    corpus_of,
    dropped,
    language_counts,
    origins_of,
    rule_counts,
    signal_counts,
    train_tokens,
)
from t5repro.export.facts import Run, manifest_hash, pretty
from t5repro.files import read_file, write_text
from t5repro.lineage.graph import Job

NAME = "the summary"
TITLE = "Public summary of training content (Article 53(1)(d), draft)"
NOTICE = (
    "A draft for a provider of a general-purpose model, and no legal advice. Values are from "
    "manifests and counts of the run, or stated by the provider where marked."
)
UNKNOWN = "not known to t5repro"
RUN_FILE = "the run file, in the manifest of `data`"
COLUMNS = ("field", "asked", "answer", "source")
TOP_SHARE = 10  # percent of the domains that the template asks for
TABLE_ROWS = 20  # of them in the document; the CSV has all
SIZES = ((10**9, "less than 1 billion tokens"), (10**13, "1 billion to 10 trillion tokens"))
LARGEST = "more than 10 trillion tokens"
CRAWLS = ("commoncrawl", "common crawl")


@dataclass(frozen=True)
class Field:
    """One field of the summary.

    Attributes:
        key: section of the template and name, by which a file of answers names it.
        title: the question of the template.
        value: the answer; None if it is open.
        source: origin of the answer; of an open field, who can answer it.
        stated: whether the provider states it.
    """

    key: str
    title: str
    value: str | None
    source: str
    stated: bool = False


def summary_fields(run: Run, contents: Contents | None) -> list[Field]:
    """Return the fields of the summary of a run.

    Args:
        run: with one corpus.
        contents: of the corpus; None leaves the fields open that need its rows.

    Raises:
        LineageError: the run has no corpus, or several.
    """
    corpus = corpus_of(run, NAME)
    return [*_general(run, corpus, contents), *_sources(run, contents), *_processing(run, corpus)]


def _general(run: Run, corpus: Job, contents: Contents | None) -> list[Field]:
    languages = language_counts(corpus)
    tokens = train_tokens(run)
    provider = "the provider"
    return [
        Field("1.1.provider", "provider, and authorised representative", None, provider),
        Field(
            "1.2.model",
            "versioned model names",
            f"run {run.name}, corpus manifest sha256 {manifest_hash(corpus)}",
            "manifests",
        ),
        Field("1.2.dependencies", "models that it builds on", _base_model(run), RUN_FILE),
        Field("1.2.market", "date of placing on the Union market", None, provider),
        Field("1.3.modality", "modalities of the training data", "text", "the tool reads no other"),
        Field(
            "1.3.size",
            "size of the training text, after preprocessing",
            None if tokens is None else f"{size_class(tokens)} ({tokens:,} tokens)",
            "counter `tokens` of the rule `tokens`",
        ),
        Field("1.3.types", "types of content", None, provider),
        Field(
            "1.3.acquired",
            "latest date of acquisition",
            (contents.last or None) if contents else None,
            "latest time among the rows of the corpus",
        ),
        Field(
            "1.3.languages",
            "languages",
            _language_text(languages) or None,
            "counter `languages` of the rule `c4`",
        ),
        Field("1.3.other", "other characteristics", None, provider),
    ]


def _base_model(run: Run) -> str | None:
    trainings = run.of_rule("pretrain")
    if not trainings:
        return None
    adopted = {str(job.settings["pretrain"].get("start_from") or "") for job in trainings} - {""}
    return "; ".join(sorted(adopted)) or "none: the weights are trained from random values"


def size_class(tokens: int) -> str:
    """Return the class of the template for a number of tokens."""
    return next((name for limit, name in SIZES if tokens < limit), LARGEST)


def _language_text(languages: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(
        f"{name}: {counts['train_pages']:,} pages"
        + (f", {counts['train_characters']:,} characters" if "train_characters" in counts else "")
        for name, counts in languages.items()
    )


def _sources(run: Run, contents: Contents | None) -> list[Field]:
    crawl = origins_of(run, CLEANED[:1])
    own = origins_of(run, CLEANED[1:])
    tasks = origins_of(run, ("tasks",))
    provider = "the provider"
    period = f"{contents.first} to {contents.last}" if contents and contents.first else None
    is_own_crawl = bool(crawl) and not any(
        crawl_name in origin.origin.lower() for origin in crawl for crawl_name in CRAWLS
    )
    return [
        Field("2.1.crawl", "publicly available data sets: crawls", _origins(crawl), RUN_FILE),
        Field("2.1.tasks", "publicly available data sets: tasks", _origins(tasks), RUN_FILE),
        Field("2.1.period", "period of collection", period, "times among the rows of the corpus"),
        Field("2.1.domains", "most relevant domains by size", _domains(contents), "its rows"),
        Field("2.2.private", "data licensed or otherwise private", _origins(own), RUN_FILE),
        Field(
            "2.3.crawlers",
            "crawlers of the provider",
            None if is_own_crawl or not crawl else "no: the crawl is Common Crawl's",
            "origins in the run file; another crawl may be the provider's own",
        ),
        Field("2.4.users", "data of users", None, provider),
        Field("2.5.synthetic", "synthetic data", _synthetic(crawl + own), RUN_FILE),
        Field("2.6.other", "other sources", None, provider),
    ]


def _origins(origins: list[Any]) -> str | None:
    lines = [f"{origin.origin} ({len(origin.files)} files; {origin.licence})" for origin in origins]
    return "; ".join(lines) or None


def _synthetic(origins: list[Any]) -> str | None:
    synthetic = [origin.origin for origin in origins if "synthetic" in origin.origin.lower()]
    return f"yes: {'; '.join(synthetic)}" if synthetic else None


def top_domains(contents: Contents) -> list[tuple[str, int, int]]:
    """Return domain, pages and bytes of the largest domains that the template asks for."""
    count = max(1, len(contents.domains) * TOP_SHARE // 100)
    return [(name, *sizes) for name, sizes in list(contents.domains.items())[:count]]


def _domains(contents: Contents | None) -> str | None:
    if contents is None or not contents.domains:
        return None
    top = top_domains(contents)
    names = ", ".join(f"{name} ({size:,} bytes)" for name, _, size in top[:TABLE_ROWS])
    more = f", and {len(top) - TABLE_ROWS} more" if len(top) > TABLE_ROWS else ""
    return f"the largest {len(top)} of {len(contents.domains)} hosts: {names}{more}"


def _processing(run: Run, corpus: Job) -> list[Field]:
    rules = "counter `rules` of the rule `c4`"
    bad_words = dropped(corpus, "bad_words")
    return [
        Field("3.1.signatory", "signatory of the code of practice", None, "the provider"),
        Field(
            "3.1.opt_outs", "measures to respect reservations of rights", _opt_outs(corpus), rules
        ),
        Field(
            "3.1.signals",
            "reservations and licences that pages state",
            signals_text(corpus),
            "counter `signals` of the rule `c4`; open unless `c4.signals.source` is set",
        ),
        Field(
            "3.2.illegal",
            "measures against illegal content",
            None if bad_words is None else f"lists of words dropped {bad_words:,} pages",
            rules,
        ),
        Field("3.3.other", "other processing", processing_text(corpus) or None, rules),
    ]


def _opt_outs(corpus: Job) -> str | None:
    withdrawn, reserved = dropped(corpus, "withdrawn"), dropped(corpus, "signals")
    if withdrawn is None:
        return None
    text = f"{withdrawn:,} pages withdrawn on request were dropped"
    return f"{text}; {reserved:,} by a signal of the page" if reserved else text


def signals_text(corpus: Job) -> str | None:
    """Return read pages by signal; None if signals were not read."""
    counts = ", ".join(f"{name} {count:,}" for name, count in signal_counts(corpus).items())
    return f"pages that were read, kept or not: {counts}" if counts else None


def processing_text(corpus: Job) -> str:
    """Return the input and the output of each rule, in the order of the rules."""
    return "; ".join(
        f"{counts['rule']}: {counts['kept']:,} of {counts['in']:,} {counts['unit']} kept"
        for counts in rule_counts(corpus)
    )


def answered(fields: list[Field], path: Path) -> list[Field]:
    """Return the fields with a provider's answers.

    Args:
        fields: of the summary.
        path: YAML, key of a field -> text.

    Raises:
        LineageError: the file cannot be read, names no field, or contradicts a known value.
    """
    try:
        answers = parse_yaml(read_file(path).decode("utf-8"), str(path)) or {}
    except (OSError, UnicodeDecodeError, SettingsError) as error:
        raise LineageError(f"--answers {path}: cannot be read ({error})") from error
    if not isinstance(answers, dict):
        raise LineageError(f"--answers {path}: no table; write KEY: TEXT, such as 1.1.provider: …")
    by_key = {field.key: field for field in fields}
    for key, answer in answers.items():
        if key not in by_key:
            raise LineageError(
                f"--answers {path}: {key!r} is no field; they are {', '.join(by_key)}"
            )
        if not isinstance(answer, str) or not answer.strip():
            raise LineageError(f"--answers {path}: {key} is {answer!r}; expected a text")
        value = by_key[key].value
        if value is not None and value != answer:
            raise LineageError(
                f"--answers {path}: {key} is {answer!r}, and {by_key[key].source} says {value!r}; "
                "remove the answer"
            )
    return [
        Field(field.key, field.title, answers[field.key], "stated by the provider", stated=True)
        if field.value is None and field.key in answers
        else field
        for field in fields
    ]


def write(run: Run, output: Path | None, answers: Path | None) -> str:
    """Return the summary of a run: JSON, HTML or, by default, Markdown, by the file's ending.

    Beside a file, `NAME.domains.csv` gets the largest domains.
    """
    contents = contents_of(run, corpus_of(run, NAME))
    fields = summary_fields(run, contents)
    if answers is not None:
        fields = answered(fields, answers)
    if output is not None:
        write_text(output.with_suffix(".domains.csv"), domains_csv(contents))
    ending = output.suffix if output is not None else ""
    return {".json": _json, ".html": _html}.get(ending, markdown)(fields)


def domains_csv(contents: Contents) -> str:
    """Return the largest domains with their pages and bytes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([("domain", "pages", "bytes"), *top_domains(contents)])
    return text.getvalue()


def _json(fields: list[Field]) -> str:
    rows = [{**asdict(field), "open": field.value is None} for field in fields]
    return pretty({"title": TITLE, "notice": NOTICE, "fields": rows})


def markdown(fields: list[Field]) -> str:
    """Return the summary as Markdown."""
    return f"# {TITLE}\n\n{NOTICE}\n\n{markdown_table(fields)}\n"


def markdown_table(fields: list[Field]) -> str:
    """Return the fields as a table of Markdown."""
    rows = [_cells(field) for field in fields]
    lines = [list(COLUMNS), ["---"] * len(COLUMNS)]
    lines += [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(field: Field) -> tuple[str, str, str, str]:
    value = f"**open**: {UNKNOWN}" if field.value is None else " ".join(field.value.split())
    return field.key, field.title, value, field.source


def _html(fields: list[Field]) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(field))}</tr>\n"
        for field in fields
    )
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{TITLE}</title>\n</head>\n<body>\n<h1>{TITLE}</h1>\n<p>{escape(NOTICE)}</p>\n"
        f"<table>\n<tr>{head}</tr>\n{rows}</table>\n</body>\n</html>\n"
    )
