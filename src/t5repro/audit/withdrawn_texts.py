"""Collects the texts of withdrawn pages, which `config.withdrawn` knows again under any URL."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from t5repro.audit.withdrawal import Entries, RawFile
from t5repro.c4.own_text.rows import read_rows
from t5repro.c4.wet.redact import is_wet, texts_of_records
from t5repro.config.sections.corpus import TextRows
from t5repro.config.withdrawn import PAGES, WithdrawnPages, read_pages, text_hash
from t5repro.data.crawl_lists import is_wat


def with_texts(root: Path, entries: Entries, files: Iterable[RawFile]) -> Entries:
    """Return entries of the lists of withdrawn sources with the texts of the pages they name.

    Args:
        root: the checkout.
        entries: list -> its part -> entry -> reason.
        files: the raw files that have the pages, before they are redacted.
    """
    parts: Mapping[str, Mapping[str, str]] = entries.get(PAGES.as_posix(), {})
    pages, earlier = WithdrawnPages.model_validate(parts), read_pages(root / PAGES)
    texts: dict[str, str] = {}
    for file in {file.sha256: file for file in files if not file.whole}.values():  # copies once
        if is_wat(file.name):
            continue  # data on pages, no text of theirs
        readings = [TextRows.model_validate(values) for values in file.readings]
        for urls, text in texts_of(root / file.path, file.name, readings, earlier.holds):
            url = next(filter(pages.holds, urls), None)
            if url is not None and (digest := text_hash(text)):
                texts.setdefault(digest, pages.reason_of(url))
    return {**entries, PAGES.as_posix(): {**parts, "texts": texts}} if texts else entries


def texts_of(
    path: Path,
    name: str,
    readings: Sequence[TextRows],
    is_emptied: Callable[[str], bool] | None = None,
) -> Iterator[tuple[list[str], str]]:
    """Yield the addresses and the text of each page of a raw file.

    Args:
        path: the file.
        name: its path below `data.folder`.
        readings: how jobs read it as own text; empty for a WET or WAT file.
        is_emptied: returns whether an earlier withdrawal has emptied the row of an id.
    """
    for settings in readings:
        for row in read_rows(path, name, settings, is_emptied):
            yield [row.id], row.text
    if not readings and (is_wet(path) or is_wat(name)):
        yield from texts_of_records(path)
