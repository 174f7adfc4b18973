"""The corpus of a run: pages per step of C4, drop reasons, languages, samples of dropped text.

Samples are untrusted text from the crawl. They are cut, control characters are replaced, and the
template escapes them.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import read_json, sha256_of

EXCERPT_CHARS = 220
SAMPLES_PER_RULE = 3
MAX_FAULTS = 20
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Reason:
    """A drop reason with its count; `width` is its share in per cent, for the bar."""

    name: str
    count: str
    share: str
    width: str


@dataclass(frozen=True)
class Step:
    """One step of the construction: number of units before and after it, and drop reasons."""

    title: str
    unit: str
    before: str
    kept: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Language:
    """The part of the corpus in one language; counts as text."""

    name: str
    detected: str
    bad: str
    train_pages: str
    train_characters: str
    validation_pages: str
    validation_characters: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Place:
    """The record that a page was made from, as text and link; empty if the manifest lacks it."""

    text: str = ""
    link: str = ""


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a dropped text, the URL of its page, and its record of the crawl."""

    text: str
    url: str
    place: Place


@dataclass(frozen=True)
class Sample:
    """A rule and excerpts of text that it dropped."""

    rule: str
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True)
class Corpus:
    """The corpus of one or more arms.

    Attributes:
        arms: names of the arms that share it.
        read: records read from the crawl, or rows of own text.
        without_url: records among them that are not pages; empty if there are none.
        kept: pages in the corpus.
        pages: the same as a number.
        kept_share: kept pages in per cent.
        steps: steps of the construction, in their order.
        languages: its languages.
        other_languages: detected languages that were not selected, with their pages.
        samples: excerpts of text that each rule dropped.
        faults: kinds of damage in the crawl, with their counts.
        named_faults: file and position of the first faults.
        signals: signals of the read pages, if they were read; shares are of these pages.
        read_pages: pages whose signals were read.
    """

    arms: str
    read: str
    without_url: str
    kept: str
    pages: int
    kept_share: str
    steps: tuple[Step, ...]
    languages: tuple[Language, ...]
    other_languages: str
    samples: tuple[Sample, ...]
    faults: str = ""
    named_faults: tuple[str, ...] = ()
    signals: tuple[Reason, ...] = ()
    read_pages: str = ""


def corpora(manifests: Mapping[str, Path], links: Mapping[str, str] | None = None) -> list[Corpus]:
    """Return each distinct corpus once, with the arms that share it.

    Args:
        manifests: arm -> manifest of its corpus.
        links: name of a raw file -> link to it; by default no file has one.

    Raises:
        ArtifactError: a manifest is missing or has no counts.
    """
    by_content: dict[str, tuple[list[str], Path]] = {}
    for arm, path in manifests.items():
        if not path.is_file():
            raise ArtifactError(f"{path} is missing; run the stage c4, which writes it")
        by_content.setdefault(sha256_of(path), ([], path))[0].append(arm)
    return [_corpus(", ".join(arms), path, links or {}) for arms, path in by_content.values()]


def _corpus(arms: str, path: Path, links: Mapping[str, str]) -> Corpus:
    counters = read_json(path).get("counters", {})
    missing = [key for key in ("rules", "languages") if not counters.get(key)]
    if missing:
        raise ArtifactError(f"{path} has no counters {missing}; rerun the stage c4")
    rules = counters["rules"]
    faults = counters.get("faults", {})
    # Other steps count lines or spans.
    page_rules = [rule for rule in rules if rule["unit"] == "pages"]
    records, kept_pages = page_rules[0]["in"], page_rules[-1]["kept"]
    without_url = page_rules[0]["dropped"].get("no_url", 0)
    return Corpus(
        arms=arms,
        read=f"{records:,}",
        without_url=f"{without_url:,}" if without_url else "",
        kept=f"{kept_pages:,}",
        pages=kept_pages,
        kept_share=percentage(kept_pages, records),
        steps=tuple(_step(rule) for rule in rules),
        languages=tuple(_language(name, entry) for name, entry in counters["languages"].items()),
        other_languages=", ".join(
            f"{name} {count:,}" for name, count in counters.get("other_languages", {}).items()
        ),
        samples=_samples(counters.get("samples", {}), links),
        faults=", ".join(
            f"{rule_title(name)} {count:,}" for name, count in faults.get("counts", {}).items()
        ),
        named_faults=tuple(
            safe_text(f"{fault['file']}: {fault['detail']}")
            for fault in faults.get("named", [])[:MAX_FAULTS]
        ),
        signals=_reasons(counters.get("signals", {}), usable := _usable_pages(page_rules)),
        read_pages=f"{usable:,}",
    )


def _usable_pages(page_rules: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of pages that reading kept."""
    return next((int(rule["kept"]) for rule in page_rules if rule["rule"] == "read"), 0)


def _step(rule: Mapping[str, Any]) -> Step:
    """Return a step, its reasons by count; shares are of the units before the step."""
    units_before = rule["in"]
    return Step(
        title=rule_title(rule["rule"]),
        unit="records" if rule["rule"] == "read" else rule["unit"],  # not all are pages
        before=f"{units_before:,}",
        kept=f"{rule['kept']:,}",
        reasons=_reasons(rule["dropped"], units_before),
    )


def _reasons(counts: Mapping[str, int], total: int) -> tuple[Reason, ...]:
    """Return counts by name, the largest first, with their shares of a total."""
    return tuple(
        Reason(
            name=rule_title(name),
            count=f"{count:,}",
            share=percentage(count, total),
            width=f"{100 * count / total if total else 0:.1f}",
        )
        for name, count in sorted(counts.items(), key=lambda reason: (-reason[1], reason[0]))
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


def rule_title(rule: str) -> str:
    """Return the title of a rule: ``too_few_sentences`` -> ``too few sentences``."""
    return " ".join("URL" if word == "url" else word for word in rule.split("_"))


def percentage(count: int, total: int) -> str:
    """Return a share in per cent with one decimal; empty if the total is 0."""
    return f"{100 * count / total:.1f} %" if total else ""


def _samples(samples: Mapping[str, list[Any]], links: Mapping[str, str]) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            rule=rule_title(rule),
            excerpts=tuple(
                Excerpt(
                    text=safe_text(sample["text"]),
                    url=safe_text(sample["url"]),
                    place=place_of(sample, links),
                )
                for sample in samples[rule][:SAMPLES_PER_RULE]
            ),
        )
        for rule in sorted(samples)
        if samples[rule]
    )


def place_of(page: Mapping[str, Any], links: Mapping[str, str]) -> Place:
    """Return the record of a page of a manifest.

    Args:
        page: has ``file`` and ``record``, unless an earlier version wrote it.
        links: name of a raw file -> link to it.
    """
    if "file" not in page:
        return Place()
    file = page["file"]
    return Place(f"record {page['record']} of {safe_text(file)}", links.get(file, ""))


def safe_text(text: str, chars: int = EXCERPT_CHARS) -> str:
    """Return untrusted text in one line, cut to so many characters, without control characters.

    Control characters, lone surrogates and bidirectional marks, which could change how the text
    around them is displayed, become a visible replacement.
    """
    cut = text if len(text) <= chars else text[:chars].rstrip() + " …"
    return "".join(map(_safe_character, cut))


def _safe_character(character: str) -> str:
    # Categories C*: control, format (bidirectional marks), surrogate, private, unassigned.
    if character.isspace():
        return " "
    return REPLACEMENT if unicodedata.category(character).startswith("C") else character
