"""Lists of withdrawn sources, and whether a page is withdrawn by its URL or its text.

``withdrawn/files.yaml`` lists raw files: they are neither fetched nor checked nor read, and tasks
that need one are removed from the mixture. ``withdrawn/pages.yaml`` lists URLs, domains, what a
list of removals names besides, and hashes of the texts of these pages: `c4_clean` drops the pages,
and those with such a text, and counts them. Both are committed;
`t5repro withdraw` writes them.

They are two files because they are inputs of different rules: a withdrawn task file must not clean
the crawl again.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from unicodedata import normalize

from pydantic import Field, ValidationError

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.config.field import Section
from t5repro.config.hosts import address_form, domain_name, domains_of, host_of
from t5repro.errors import SettingsError
from t5repro.files import has_conflict, read_file

FOLDER = Path("withdrawn")
FILES = FOLDER / "files.yaml"
PAGES = FOLDER / "pages.yaml"
UNFINISHED = FOLDER / "unfinished.json"  # journal of a withdrawal; only while it is at work
CURE = "restore it with git checkout, t5repro withdraw writes it"

FILE_LISTS = ("files", "sha256")
URL_LISTS = ("urls", "domains", "addresses", "hosts", "prefixes", "hashes")
PAGE_LISTS = (*URL_LISTS, "texts")
MIN_TEXT_CHARS = 50  # "404 Not Found" is nobody's: a shorter text is not known again
Listed = TypeVar("Listed", bound=Section)


class WithdrawnFiles(Section):
    """Withdrawn raw files: path below `data.folder` -> reason.

    `sha256` names their bytes, which are refused under any other name. `lifted` names those that
    may be used again, with the reason.
    """

    files: dict[str, str] = Field(default_factory=dict)
    sha256: dict[str, str] = Field(default_factory=dict)
    lifted: dict[str, str] = Field(default_factory=dict)


class WithdrawnPages(Section):
    """Withdrawn pages: URL or domain -> reason.

    A list of removals adds `addresses` (`address_form` of an URL), `hosts` (without subdomains),
    `prefixes` (beginnings of such forms) and `hashes` (SHA-256 of such a form, or of a domain).
    `texts` has hashes of the texts of withdrawn pages (`text_hash`), which may return at any URL.
    `lifted` names those that may be used again, with the reason; an entry of both is withdrawn.
    """

    urls: dict[str, str] = Field(default_factory=dict)
    domains: dict[str, str] = Field(default_factory=dict)
    addresses: dict[str, str] = Field(default_factory=dict)
    hosts: dict[str, str] = Field(default_factory=dict)
    prefixes: dict[str, str] = Field(default_factory=dict)
    hashes: dict[str, str] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    lifted: dict[str, str] = Field(default_factory=dict)

    def holds(self, url: str) -> bool:
        """Return whether a page is withdrawn."""
        return next(self.entries_of(url), None) is not None

    def has_text(self, url: str, text: str) -> bool:
        """Return whether a page has the text of a withdrawn one; no page of a lifted entry has."""
        digest = text_hash(text) if self.texts else ""  # of a short text it is empty
        return bool(digest) and digest in self.texts and not self._lifted.holds(url)

    def reason_of(self, url: str) -> str:
        """Return why a page is withdrawn."""
        part, entry = next(self.entries_of(url))
        reasons: dict[str, str] = getattr(self, part)
        return reasons[entry]

    def entries_of(self, url: str) -> Iterator[tuple[str, str]]:
        """Yield (list, entry) of every entry that withdraws a page."""
        if url in self.urls:
            yield "urls", url
        names = domains_of(url) if self.domains or self.hashes else ()
        for name in sorted(self._names.keys() & names) if names else ():
            yield "domains", self._names[name]
        if self.addresses or self.hosts or self.prefixes or self.hashes:
            yield from self._entries_of_form(address_form(url), names)

    def _entries_of_form(self, form: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        host = host_of(form)
        if form in self.addresses:
            yield "addresses", form
        if host in self.hosts:
            yield "hosts", host
        for prefix in self._prefixes_of_host.get(host, ()):
            if form.startswith(prefix):
                yield "prefixes", prefix
        if self.hashes:
            hashes = (sha256(text.encode()).hexdigest() for text in (form, *sorted(names)))
            yield from (("hashes", name) for name in hashes if name in self.hashes)

    @cached_property
    def _lifted(self) -> "WithdrawnPages":
        # A lifted entry does not tell its list, and fits none but that.
        return WithdrawnPages(**dict.fromkeys(URL_LISTS, self.lifted))

    @cached_property
    def _names(self) -> dict[str, str]:
        return {domain_name(domain): domain for domain in self.domains}

    @cached_property
    def _prefixes_of_host(self) -> dict[str, list[str]]:
        prefixes: dict[str, list[str]] = {}
        for prefix in self.prefixes:
            prefixes.setdefault(host_of(prefix), []).append(prefix)
        return prefixes

    def __bool__(self) -> bool:
        """Return whether the list has any entry."""
        return any(getattr(self, name) for name in PAGE_LISTS)


def text_hash(text: str) -> str:
    """Return the SHA-256 by which a text is known again; empty for a short one.

    It is of the words of the text in NFC with one space between them: line ends, indents and blank
    lines do not count, while letters, case and punctuation do. Pages are compared as WET has them,
    before any rule of C4.
    """
    words = " ".join(normalize("NFC", text).split())
    if len(words) < MIN_TEXT_CHARS:
        return ""
    return sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def read_files(path: Path = FILES) -> WithdrawnFiles:
    """Return the withdrawn raw files; none if the list is missing.

    Raises:
        SettingsError: the list cannot be read.
    """
    return parse_list(_read(path), path, WithdrawnFiles)


def read_pages(path: Path | None = PAGES) -> WithdrawnPages:
    """Return the withdrawn URLs and domains; none if the list is missing.

    Raises:
        SettingsError: the list cannot be read.
    """
    return WithdrawnPages() if path is None else parse_list(_read(path), path, WithdrawnPages)


def check_finished() -> None:
    """Refuse to plan a run while a withdrawal is unfinished.

    Raises:
        SettingsError: a withdrawal was stopped.
    """
    if UNFINISHED.exists():
        raise SettingsError(
            f"a withdrawal was stopped before its end ({UNFINISHED}): repeat it, or complete it "
            "with t5repro dvc rehydrate"
        )


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except FileNotFoundError:
        return b""
    except PermissionError:
        raise  # the command line names the file
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}; {CURE}") from error


def parse_list(data: bytes, path: Path, model: type[Listed]) -> Listed:
    """Return the content of a list; empty text has no entries.

    Args:
        data: the bytes of the list, of the checkout or of a commit.
        path: of the list, for messages.
        model: `WithdrawnFiles` or `WithdrawnPages`.

    Raises:
        SettingsError: these are not the bytes of a list.
    """
    if has_conflict(data):
        raise SettingsError(
            f"{path} is not a list of withdrawn sources: it has the marks of a conflict of git; "
            "remove the marks and keep the withdrawals of both sides"
        )
    try:
        parsed = parse_yaml(data.decode("utf-8"), str(path))
        return model.model_validate({} if parsed is None else parsed)
    except (SettingsError, ValidationError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} is not a list of withdrawn sources ({error}); {CURE}"
        ) from error
