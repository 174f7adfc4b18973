"""What the rules of C4 dropped and why, as the report shows it.

Excerpts of dropped pages are text that strangers wrote: they are cut, stripped of characters that
act on their surroundings, and escaped by the template.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import read_json, sha256_of

EXCERPT_CHARS = 220
EXCERPTS_PER_RULE = 3
FAULTS_SHOWN = 20
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Reason:
    """How much one reason dropped; `width` is its share in per cent, for the bar."""

    name: str
    count: str
    share: str
    width: str


@dataclass(frozen=True)
class Step:
    """One step of the construction: what came in, what was dropped and why, what was kept."""

    title: str
    unit: str
    came_in: str
    kept: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Language:
    """What the corpus holds in one language; counts as text."""

    name: str
    detected: str
    bad: str
    train_pages: str
    train_characters: str
    validation_pages: str
    validation_characters: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a dropped text and where it stood."""

    text: str
    url: str


@dataclass(frozen=True)
class Sample:
    """A rule and some of what it dropped."""

    rule: str
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True)
class Corpus:
    """The corpus of one or more experiments.

    Attributes:
        experiments: names of those that share it.
        read: pages read from the crawl.
        kept: pages in the corpus.
        kept_share: the second of the first.
        steps: the construction, in its order.
        languages: what it holds.
        others: languages that were detected and not asked for, with their pages.
        samples: examples of what each reason dropped.
        faults: what was wrong with the crawl and was skipped, with its count.
        named_faults: where, for the first of them.
    """

    experiments: str
    read: str
    kept: str
    kept_share: str
    steps: tuple[Step, ...]
    languages: tuple[Language, ...]
    others: str
    samples: tuple[Sample, ...]
    faults: str = ""
    named_faults: tuple[str, ...] = ()


def corpora(manifests: Mapping[str, Path]) -> list[Corpus]:
    """Return each distinct corpus once, with the experiments that share it.

    Args:
        manifests: experiment -> manifest of its corpus.

    Raises:
        ArtifactError: a manifest is missing or has no counts.
    """
    shared: dict[str, tuple[list[str], Path]] = {}
    for name, path in manifests.items():
        if not path.is_file():
            raise ArtifactError(f"{path} is missing; run the stage c4, which writes it")
        shared.setdefault(sha256_of(path), ([], path))[0].append(name)
    return [_corpus(", ".join(names), path) for names, path in shared.values()]


def _corpus(experiments: str, path: Path) -> Corpus:
    counters = read_json(path).get("counters", {})
    absent = [key for key in ("rules", "languages") if not counters.get(key)]
    if absent:
        raise ArtifactError(f"{path} counts no {absent}; rerun the stage c4")
    rules = counters["rules"]
    faults = counters.get("faults", {})
    pages = [rule for rule in rules if rule["unit"] == "pages"]
    read, kept = pages[0]["in"], pages[-1]["kept"]
    return Corpus(
        experiments=experiments,
        read=f"{read:,}",
        kept=f"{kept:,}",
        kept_share=share(kept, read),
        steps=tuple(_step(rule) for rule in rules),
        languages=tuple(_language(name, entry) for name, entry in counters["languages"].items()),
        others=", ".join(
            f"{name} {count:,}" for name, count in counters.get("other_languages", {}).items()
        ),
        samples=_samples(counters.get("samples", {})),
        faults=", ".join(
            f"{words(name)} {count:,}" for name, count in faults.get("counts", {}).items()
        ),
        named_faults=tuple(
            safe_text(f"{item['file']}: {item['detail']}")
            for item in faults.get("named", [])[:FAULTS_SHOWN]
        ),
    )


def _step(rule: Mapping[str, Any]) -> Step:
    """Return a step; the share of a reason is of what came in."""
    came_in, dropped = rule["in"], rule["dropped"]
    return Step(
        title=words(rule["rule"]),
        unit=rule["unit"],
        came_in=f"{came_in:,}",
        kept=f"{rule['kept']:,}",
        reasons=tuple(
            Reason(
                name=words(name),
                count=f"{count:,}",
                share=share(count, came_in),
                width=f"{100 * count / came_in if came_in else 0:.1f}",
            )
            for name, count in sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
        ),
    )


def _language(name: str, entry: Mapping[str, Any]) -> Language:
    return Language(
        name=name,
        detected=f"{entry['detected_pages']:,}",
        bad=f"{entry['pages_with_bad_words']:,}",
        train_pages=f"{entry['train_pages']:,}",
        train_characters=f"{entry['train_characters']:,}",
        validation_pages=f"{entry['validation_pages']:,}",
        validation_characters=f"{entry['validation_characters']:,}",
        steps=tuple(_step(rule) for rule in entry["rules"]),
    )


def words(rule: str) -> str:
    """Return a rule's name for people: ``too_few_sentences`` -> ``too few sentences``."""
    return " ".join("URL" if word == "url" else word for word in rule.split("_"))


def share(part: int, whole: int) -> str:
    """Return a share in per cent, one place; nothing of nothing is nothing."""
    return f"{100 * part / whole:.1f} %" if whole else ""


def _samples(samples: Mapping[str, list[Any]]) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            rule=words(rule),
            excerpts=tuple(_excerpt(item) for item in samples[rule][:EXCERPTS_PER_RULE]),
        )
        for rule in sorted(samples)
        if samples[rule]
    )


def _excerpt(item: Any) -> Excerpt:
    if isinstance(item, Mapping):
        return Excerpt(text=safe_text(str(item["text"])), url=safe_text(str(item.get("url", ""))))
    return Excerpt(text=safe_text(str(item)), url="")


def safe_text(text: str) -> str:
    """Return text of the crawl in one line, cut, without characters that act on others.

    Control characters, lone surrogates and marks that turn the reading direction become a
    visible replacement.
    """
    cut = text if len(text) <= EXCERPT_CHARS else text[:EXCERPT_CHARS].rstrip() + " …"
    return "".join(map(_safe_character, cut))


def _safe_character(character: str) -> str:
    if character.isspace():
        return " "
    return REPLACEMENT if unicodedata.category(character).startswith("C") else character
