"""Counts of all rules and languages for the manifest of the corpus, in the order of the rules.

`page_filter` counts: also the pages that cleaning dropped, of which only the newest copy of a URL
counts here. The manifest of a cleaned shard counts every copy (`clean`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t5repro.c4 import reasons
from t5repro.c4.reasons import KEPT, LANGUAGE_REASONS, LINE_REASONS
from t5repro.c4.samples import Rank, Samples
from t5repro.c4.text import language
from t5repro.c4.wet.faults import FaultLog
from t5repro.config.corpus_files import SPLITS
from t5repro.config.sections.c4 import C4Stage


class PageCounts:
    """Counts pages, lines and units of text, in total and by language, with examples.

    Attributes:
        samples: examples of each reason.
        kept: first pages of each language of the training split, in the order of the corpus,
            without their text: a manifest is kept longer than a page that is withdrawn.
        faults: faults of the WET files.
        pages: pages by reason.
        signals: read pages by signal, every copy of a URL; empty if signals were not read.
        lines: lines of the newest pages, by `tables.LINE_COUNTS`.
        units: units of text, compared and removed.
        detected: pages by language, before bad words.
        with_bad_words: pages with bad words by language, dropped or not.
        by_language: (most probable language, reason or line count) -> pages or lines.
        split_pages: (language, split) -> pages of the corpus.
        split_chars: (language, split) -> characters of the corpus.
    """

    def __init__(self) -> None:
        self.samples = Samples()
        self.kept = Samples()
        self.faults = FaultLog()
        self.pages: Counter[str] = Counter()
        self.signals: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self.units: Counter[str] = Counter()
        self.detected: Counter[str] = Counter()
        self.with_bad_words: Counter[str] = Counter()
        self.by_language: Counter[tuple[str, str]] = Counter()
        self.split_pages: Counter[tuple[str, str]] = Counter()
        self.split_chars: Counter[tuple[str, str]] = Counter()

    def drop(self, reason: str, rank: Rank, url: str, text: str) -> None:
        """Count a dropped page and offer it as an example."""
        self.pages[reason] += 1
        self.samples.offer(reason, rank, url, text)

    def to_json(self) -> dict[str, Any]:
        """Return all counts and examples, for `merge`."""
        return {
            **self._counters(),
            **{
                name: [[*key, count] for key, count in counter.items()]
                for name, counter in self._pair_counters().items()
            },
            "samples": self.samples.to_json(),
            "kept": self.kept.to_json(),
            "faults": self.faults.to_json(),
        }

    def merge(self, counts: Mapping[str, Any]) -> None:
        """Add the result of `to_json` of another part of the crawl."""
        for name, counter in self._counters().items():
            counter.update(counts[name])
        for name, pair_counter in self._pair_counters().items():
            pair_counter.update({(first, second): n for first, second, n in counts[name]})
        self.samples.join(counts["samples"])
        self.kept.join(counts["kept"])
        self.faults.merge(counts["faults"])

    def _counters(self) -> dict[str, Counter[str]]:
        return {
            "pages": self.pages,
            "signals": self.signals,
            "lines": self.lines,
            "units": self.units,
            "detected": self.detected,
            "with_bad_words": self.with_bad_words,
        }

    def _pair_counters(self) -> dict[str, Counter[tuple[str, str]]]:
        return {
            "by_language": self.by_language,
            "split_pages": self.split_pages,
            "split_chars": self.split_chars,
        }

    def counters(self, settings: C4Stage) -> dict[str, Any]:
        """Return the input, the drops and the output of every rule, for the manifest."""
        languages = settings.c4.languages
        return {
            "rules": list(self._rules(settings)),
            "languages": {name: self._language(name) for name in languages},
            "other_languages": {
                name: count
                for name, count in sorted(self.detected.items())
                if name not in languages
            },
            "faults": self.faults.to_json(),
            "detector": language.detector_version(),
            "samples": self.samples.readable(),
            "kept": self.kept.pages(),
            **({"signals": dict(self.signals)} if self.signals else {}),
        }

    def _language(self, name: str) -> dict[str, Any]:
        """Return the counts of one language.

        Its rules count pages by their most probable language. The language of pages that are
        dropped before detection is unknown.
        """
        lines = {reason: self.by_language[name, f"lines_{reason}"] for reason in LINE_REASONS}
        all_lines = self.by_language[name, "kept_lines"] + sum(lines.values())
        dropped = {reason: self.by_language[name, reason] for reason in LANGUAGE_REASONS}
        pages = self.by_language[name, KEPT] + sum(dropped.values())
        bad_words = {reasons.BAD_WORD: self.by_language[name, reasons.BAD_WORD]}
        splits = {}
        for split in SPLITS:
            splits[f"{split}_pages"] = self.split_pages[name, split]
            splits[f"{split}_characters"] = self.split_chars[name, split]
        return {
            "detected_pages": self.detected[name],
            "pages_with_bad_words": self.with_bad_words[name],
            "rules": [
                _rule("clean_lines", "lines", all_lines, lines),
                _rule("language", "pages", pages, dropped),
                _rule("bad_words", "pages", self.detected[name], bad_words),
            ],
            **splits,
        }

    def _rules(self, settings: C4Stage) -> Iterator[dict[str, Any]]:
        """Yield the counts of each rule; every rule of pages receives the output of the last."""
        c4 = settings.c4
        pages = self.pages["read"]

        def page_rule(name: str, drops: Sequence[str]) -> dict[str, Any]:
            nonlocal pages
            rule = _rule(name, "pages", pages, {reason: self.pages[reason] for reason in drops})
            pages = rule["kept"]
            return rule

        if self.pages[reasons.WITHDRAWN]:
            yield page_rule("withdrawn", (reasons.WITHDRAWN,))
        yield page_rule("read", reasons.READ_REASONS)
        yield page_rule("newest_of_url", (reasons.DUPLICATE_URL,))
        if by_signal := [name for name in reasons.SIGNAL_REASONS.values() if self.pages[name]]:
            yield page_rule("signals", by_signal)
        if c4.clean.enabled or c4.clean.min_paragraphs:
            lines = {reason: self.lines[f"lines_{reason}"] for reason in LINE_REASONS}
            all_lines = self.lines["kept_lines"] + sum(lines.values())
            yield _rule("clean_lines", "lines", all_lines, lines)
            yield page_rule("clean_pages", reasons.PAGE_REASONS)
        if c4.dedup.unit != "off":
            unit = {"line": "lines"}.get(c4.dedup.unit, "three-sentence spans")
            removed = {reasons.REPEATED_TEXT: self.units["removed_units"]}
            yield _rule("dedup_text", unit, self.units["units"], removed)
        yield page_rule("dedup_pages", reasons.SHORTENED_REASONS)
        yield page_rule("language", LANGUAGE_REASONS)
        yield page_rule("bad_words", (reasons.BAD_WORD,))


def _rule(name: str, unit: str, total: int, dropped: Mapping[str, int]) -> dict[str, Any]:
    """Return the counts of one rule."""
    return {
        "rule": name,
        "unit": unit,
        "in": total,
        "dropped": dict(dropped),
        "kept": total - sum(dropped.values()),
    }
