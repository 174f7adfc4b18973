"""The released code of C4, TFDS's `c4_utils`, unchanged and without its framework.

TensorFlow's text helpers, Beam's counters and gcld3 have stand-ins; `run` does Beam's grouping.
"""

import functools
import importlib.util
import sys
import types
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import langdetect
from nltk.data import FileSystemPathPointer
from nltk.tokenize.punkt import PunktSentenceTokenizer, load_punkt_params

from t5repro.c4.text.language import detect_languages

PACKAGE = "tensorflow_datasets"
LANGDETECT_SHARE = 8
Module = Any  # of the released code
Page = Any  # its PageFeatures


class Recipe(NamedTuple):
    """What a configuration of the builder of TFDS states (`C4Config`), and its lists.

    Attributes:
        clean: apply the rules for lines and pages.
        dedupe: remove repeated lines.
        paragraphs: ask for three long lines.
        domains: listed news domains; None reads all pages.
        urls: listed addresses; None reads all pages.
        bad_words: language -> list.
        fraction: of the pages with a listed word that is dropped.
        languages: of the corpus; empty for English.
    """

    clean: bool = True
    dedupe: bool = True
    paragraphs: bool = False
    domains: dict[str, Any] | None = None
    urls: Sequence[str] | None = None
    bad_words: dict[str, list[str]] = {}  # noqa: RUF012
    fraction: float = 1.0
    languages: Sequence[str] = ()


class Result(NamedTuple):
    """Pages after each step, by URL, and counters by namespace."""

    cleaned: dict[str, str]
    deduplicated: dict[str, str]
    final: dict[str, Page]
    counters: dict[str, dict[str, int]]


def load(punkt: Path) -> Module | None:
    """Return the module, with its counters as `counters`; None where it is not installed."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None:
        return None
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def counter(namespace: str, name: str) -> Any:
        return types.SimpleNamespace(
            inc=lambda amount=1: counters[namespace].update({name: amount})
        )

    beam = types.SimpleNamespace(
        metrics=types.SimpleNamespace(Metrics=types.SimpleNamespace(counter=counter)),
        DoFn=object,
        ParDo=_ParDo,
    )
    tensorflow = types.SimpleNamespace(
        compat=types.SimpleNamespace(as_text=str),
        io=types.SimpleNamespace(gfile=types.SimpleNamespace(GFile=open)),
    )
    public: Any = types.ModuleType(f"{PACKAGE}.public_api")
    public.core = types.SimpleNamespace(
        lazy_imports=types.SimpleNamespace(
            apache_beam=beam,
            langdetect=types.SimpleNamespace(
                DetectorFactory=langdetect.DetectorFactory,
                lang_detect_exception=langdetect.lang_detect_exception,
                detect_langs=_detect,
            ),
            gcld3=types.SimpleNamespace(NNetLanguageIdentifier=_Identifier),
            tldextract=_offline_tldextract(),
        )
    )
    lazy: Any = types.ModuleType(f"{PACKAGE}.core.utils.lazy_imports_utils")
    lazy.tensorflow = tensorflow
    stand_ins: dict[str, Any] = {
        name: types.ModuleType(name)
        for name in (PACKAGE, f"{PACKAGE}.core", f"{PACKAGE}.core.utils")
    }
    stand_ins |= {public.__name__: public, lazy.__name__: lazy}
    stand_ins[PACKAGE].public_api = public
    module = _import(
        Path(package.submodule_search_locations[0]) / "text" / "c4_utils.py", stand_ins
    )
    tokenizer = PunktSentenceTokenizer()
    tokenizer._params = load_punkt_params(FileSystemPathPointer(str(punkt)))
    module._SENTENCE_TOKENIZER = tokenizer
    module.counters = counters
    return module


def _import(path: Path, stand_ins: dict[str, Any]) -> Module:
    """Import a module while others stand in for what it imports."""
    earlier = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        spec = importlib.util.spec_from_file_location("released_c4_utils", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        for name, value in earlier.items():
            if value is None:
                del sys.modules[name]
            else:
                sys.modules[name] = value
    return module


def _offline_tldextract() -> Any:
    """tldextract with the list of suffixes that it ships; None where it is not installed."""
    if importlib.util.find_spec("tldextract") is None:
        return None
    tldextract = importlib.import_module("tldextract")
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    return types.SimpleNamespace(extract=extract)


@functools.cache
def _detect(text: str) -> list[Any]:
    """Ask langdetect about one text in eight, and langdetect-rs about the others.

    The first takes minutes for all; `text/test_language.py` compares the two to the last bit.
    """
    if not LANGDETECT_SHARE or zlib.crc32(text.encode()) % LANGDETECT_SHARE == 0:
        return langdetect.detect_langs(text)
    (best,) = detect_languages([text])
    if not best.language:
        raise langdetect.LangDetectException(0, "No features in text.")
    return [types.SimpleNamespace(lang=best.language, prob=best.probability)]


class _ParDo:
    """Beam's transform, of a list."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __ror__(self, pages: Sequence[Page]) -> list[Page]:
        self.function.start_bundle()
        return [result for page in pages for result in self.function.process(page)]


class _Identifier:
    """langdetect in place of gcld3, which has no build for this Python."""

    def __init__(self, **_: int) -> None:
        langdetect.DetectorFactory.seed = 0

    def FindLanguage(self, text: str) -> Any:
        try:
            best = _detect(text)[0]
        except langdetect.LangDetectException:
            return types.SimpleNamespace(is_reliable=False)
        return types.SimpleNamespace(is_reliable=True, probability=best.prob, language=best.lang)


def run(released: Module, wet_files: Sequence[Path], recipe: Recipe) -> Result:
    """Run the steps of `C4._get_pages_pcollection`."""
    released.counters.clear()
    groups: defaultdict[str, list[Page]] = defaultdict(list)
    for path in wet_files:
        for page in released.split_wet_file(str(path)):
            if released.is_valid_length(page) and (
                recipe.domains is None or released.is_realnews_domain(page, recipe.domains)
            ):
                groups[page.normalized_url].append(page)
    pages = [released.select_newest_page(copies) for copies in groups.values()]
    if recipe.urls is not None:
        listed = set(map(released.normalize_url, recipe.urls))
        pages = [page for page in pages if page.normalized_url in listed]
    if recipe.paragraphs:
        pages = list(filter(released.paragraph_filter, pages))
    if recipe.clean:
        clean = released.get_clean_page_fn()
        pages = [result for page in pages for result in clean(page)]
    cleaned = {page.url: page.text for page in pages}
    if recipe.dedupe:
        pages = _without_repeated_lines(released, pages, 3 if recipe.clean else 0)
    deduplicated = {page.url: page.text for page in pages}
    if recipe.languages:
        pages = released.detect_languages(pages, recipe.languages)
    else:
        pages = [result for page in pages for result in released.detect_english(page)]
    if recipe.bad_words:
        is_good = released.get_badwords_filter_fn(recipe.bad_words, recipe.fraction)
        pages = list(filter(is_good, pages))
    final = {page.url: page for page in pages}
    counters = {name: dict(counts) for name, counts in released.counters.items()}
    return Result(cleaned, deduplicated, final, counters)


def _without_repeated_lines(released: Module, pages: list[Page], min_sentences: int) -> list[Page]:
    """Do what `remove_duplicate_text` has Beam do."""
    holders = defaultdict(set)
    for page in pages:
        for line, url in released._emit_url_to_lines(page):
            holders[line].add(url)
    lines = defaultdict(list)
    for line, urls in holders.items():
        lines[min(urls, key=released._hash_text)].append(line)
    count = released.get_counter_inc_fn("dedupe-lines")
    return [
        result
        for page in pages
        for result in released._remove_lines_from_text(
            (page.url, {"pages": [page], "lines": lines[page.url]}),
            counter_inc_fn=count,
            min_num_sentences=min_sentences,
        )
    ]
