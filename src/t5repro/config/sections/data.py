"""Settings of the raw inputs (`data.*`) and of the stage `data`."""

from typing import Annotated

from pydantic import StringConstraints

from t5repro.config.field import Section

Sha256 = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]


class RawFiles(Section):
    """Raw files of one origin and licence."""

    origin: str
    """Where they can be had: an address, or who made them."""
    licence: str
    """Licence of the contents, as its owner names it."""
    files: dict[str, Sha256]
    """Path below `data.folder` -> sha256 (empty: not known, recorded when read)."""


class DataSettings(Section):
    """The frozen raw inputs: everything that the graph does not make itself."""

    folder: str = "data"
    """Folder that holds the raw inputs."""
    source: str = ""
    """Folder to copy the raw inputs from; empty: they are in `data.folder` already."""
    download: bool = False
    """Fetch what is missing from its origin; without it nothing touches the network."""
    sources: list[RawFiles] = []
    """Every raw file with its origin, licence and hash."""


class DataStage(Section):
    """Settings of `data` and `data_fetch`."""

    data: DataSettings
