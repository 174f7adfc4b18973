"""Sources that were withdrawn, and what no run may use any more.

``withdrawn/files.yaml`` lists raw files: they are neither fetched nor checked nor read, and a
task that needs one leaves the mixture. ``withdrawn/pages.yaml`` lists URLs and domains: `c4_clean`
drops their pages and counts them. Both are committed; `t5repro withdraw` writes them.

Two files, because they are inputs of different rules: a withdrawn task file must not make every
shard of the crawl be cleaned again.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from t5repro.config.field import Section
from t5repro.errors import SettingsError

FOLDER = Path("withdrawn")
FILES = FOLDER / "files.yaml"
PAGES = FOLDER / "pages.yaml"


class WithdrawnFiles(Section):
    """Raw files that may not be used: path below `data.folder` -> why."""

    files: dict[str, str] = Field(default_factory=dict)


class WithdrawnPages(Section):
    """Pages that may not be used: URL or domain -> why."""

    urls: dict[str, str] = Field(default_factory=dict)
    domains: dict[str, str] = Field(default_factory=dict)

    def holds(self, url: str) -> bool:
        """Tell whether a page was withdrawn, by its URL or by its domain."""
        return url in self.urls or any(in_domain(url, domain) for domain in self.domains)

    def __bool__(self) -> bool:
        """Tell whether anything was withdrawn."""
        return bool(self.urls or self.domains)


def in_domain(url: str, domain: str) -> bool:
    """Tell whether a URL's host is a domain or lies below it.

    The crawl has URLs that no parser takes, so the host is cut out by hand.
    """
    host = url.partition("://")[2] or url
    for mark in "/?#\\":
        host = host.partition(mark)[0]
    host = host.rpartition("@")[2].partition(":")[0].lower().rstrip(".")
    wanted = domain.lower().strip(".")
    return host == wanted or host.endswith("." + wanted)


def read_files(path: Path = FILES) -> WithdrawnFiles:
    """Return the withdrawn raw files; none if there is no such list.

    Raises:
        SettingsError: the list cannot be read.
    """
    return WithdrawnFiles.model_validate(_read(path, WithdrawnFiles))


def read_pages(path: Path | None = PAGES) -> WithdrawnPages:
    """Return the withdrawn URLs and domains; none if there is no such list.

    Raises:
        SettingsError: the list cannot be read.
    """
    return WithdrawnPages.model_validate({} if path is None else _read(path, WithdrawnPages))


def _read(path: Path, model: type[Section]) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        values = yaml.safe_load(text) or {}
        model.model_validate(values)
    except (yaml.YAMLError, ValidationError) as error:
        raise SettingsError(
            f"{path} is not a list of withdrawn sources ({error}); restore it with git checkout, "
            "t5repro withdraw writes it"
        ) from error
    found: Mapping[str, Any] = values
    return found
