"""Settings of the raw inputs (`data.*`) and of the stage `data`."""

from typing import Annotated

from t5repro.config.field import Pattern, Section

Sha256 = Annotated[str, Pattern("^([0-9a-f]{64})?$", "64 of the characters 0-9 and a-f")]


class RawFiles(Section):
    """Raw files of one origin and licence."""

    origin: str
    """URL of the files, or a description of their source."""
    licence: str
    """Licence of the contents, as stated by the owner."""
    files: dict[str, Sha256]
    """Path below `data.folder` -> SHA-256. If empty, the hash of the file that is read is recorded.
    """


class DataSettings(Section):
    """Raw inputs: all files that no rule creates."""

    folder: str = "data"
    """Folder of the raw inputs."""
    source: str = ""
    """Folder to copy the raw inputs from. If empty, they must be in `data.folder`."""
    download: bool = False
    """Whether to download missing files from their origin. If false, a run uses no network."""
    sources: list[RawFiles] = []
    """All raw files with their origins, licences and hashes."""


class DataStage(Section):
    """Settings of `data` and `data_fetch`."""

    data: DataSettings
