"""Lists of withdrawn sources, which runs no longer use.

``withdrawn/files.yaml`` lists raw files: they are neither fetched nor checked nor read, and tasks
that need one are removed from the mixture. ``withdrawn/pages.yaml`` lists URLs and domains:
`c4_clean` drops their pages and counts them. Both are committed; `t5repro withdraw` writes them.

They are two files because they are inputs of different rules: a withdrawn task file must not clean
the crawl again.
"""

from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.config.field import Section
from t5repro.config.hosts import domain_name, domains_of
from t5repro.errors import SettingsError
from t5repro.files import has_conflict, read_file

FOLDER = Path("withdrawn")
FILES = FOLDER / "files.yaml"
PAGES = FOLDER / "pages.yaml"
UNFINISHED = FOLDER / "unfinished.json"  # journal of a withdrawal; only while it is at work
CURE = "restore it with git checkout, t5repro withdraw writes it"

Listed = TypeVar("Listed", bound=Section)


class WithdrawnFiles(Section):
    """Withdrawn raw files: path below `data.folder` -> reason.

    `lifted` names those that may be used again, with the reason.
    """

    files: dict[str, str] = Field(default_factory=dict)
    lifted: dict[str, str] = Field(default_factory=dict)


class WithdrawnPages(Section):
    """Withdrawn pages: URL or domain -> reason.

    `lifted` names those that may be used again, with the reason; an entry of both is withdrawn.
    """

    urls: dict[str, str] = Field(default_factory=dict)
    domains: dict[str, str] = Field(default_factory=dict)
    lifted: dict[str, str] = Field(default_factory=dict)

    def holds(self, url: str) -> bool:
        """Return whether a page is withdrawn, by its URL or by its domain."""
        return url in self.urls or bool(self.domains and self._names & domains_of(url))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(map(domain_name, self.domains))

    def __bool__(self) -> bool:
        """Return whether the list has any entry."""
        return bool(self.urls or self.domains)


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
