"""All errors that t5repro raises on purpose.

A message names the fault, its location, the value, the allowed values and the cure::

    T5ReproError
    ├── SettingsError       a run file, an override or a recipe cannot be used
    ├── RawDataError        a raw input is missing or differs from its recorded hash
    │   ├── CrawlError      a WET file cannot be read
    │   └── TaskDataError   a task file has a wrong header or a broken row
    ├── CorpusError         the corpus cannot feed the next stage (a language is empty)
    ├── VocabularyError     the vocabulary cannot be trained, or does not fit the model
    ├── ArtifactError       a file that an earlier stage wrote is missing or damaged
    ├── CheckpointError     weights do not fit the model they are loaded into
    ├── DeviceError         the requested device is not available
    ├── LineageError        a question about the lineage cannot be answered
    ├── PackageError        a package of an extra is not installed
    ├── ClusterError        Spark cannot be started, or did not finish a job
    └── StorageError        the disk is full or a folder cannot be written

The command line prints only the message and exits with `exit_code`.
"""

import contextlib
import difflib
import errno
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

Keys = tuple[str | int, ...]  # path of a setting in the tree of a run file


class T5ReproError(Exception):
    """Base of all errors that a user can cure."""

    exit_code = 1


class SettingsError(T5ReproError):
    """A run file, an override or a recipe cannot be used.

    Attributes:
        keys: path of the setting in the run file, if the error is about one setting.
        experiment: name of the experiment, if the error is about the settings of one.
        message: text of the first fault; the error as text has the further ones too.
        further: errors about other settings that were found with it.
    """

    exit_code = 2

    def __init__(
        self, message: str, *, keys: Keys = (), further: Sequence["SettingsError"] = ()
    ) -> None:
        super().__init__("\n".join([message, *map(str, further)]))
        self.message = message
        self.further = tuple(further)
        self.keys = keys
        self.experiment = ""


class RawDataError(T5ReproError):
    """A raw input is missing or differs from its recorded hash."""


class CrawlError(RawDataError):
    """A WET file cannot be read."""


class TaskDataError(RawDataError):
    """A task file has a wrong header or a broken row."""


class CorpusError(T5ReproError):
    """The corpus cannot feed the next stage."""


class VocabularyError(T5ReproError):
    """The vocabulary cannot be trained, or does not fit the model."""


class ArtifactError(T5ReproError):
    """A file that an earlier stage wrote is missing or damaged."""


class FormError(ArtifactError, RawDataError):
    """A file has another form than its name says."""


class CheckpointError(T5ReproError):
    """Weights do not fit the model they are loaded into."""


class DeviceError(T5ReproError):
    """The requested device is not available."""


class LineageError(T5ReproError):
    """A question about the lineage cannot be answered."""

    exit_code = 2


class PackageError(T5ReproError):
    """A package of an extra is not installed."""

    exit_code = 2


class ClusterError(T5ReproError):
    """Spark cannot be started, or did not finish a job."""


class StorageError(T5ReproError):
    """The disk is full or a folder cannot be written."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: ``; nearest: 'x'``, or nothing.

    Args:
        name: the unknown name.
        names: all names that exist.
    """
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.4)
    return f"; nearest: {matches[0]!r}" if matches else ""


@contextlib.contextmanager
def packages_of(extra: str, target: str = "setup") -> Iterator[None]:
    """Turn a failed import into an error that names the extra.

    Args:
        extra: of the packages, in pyproject.toml.
        target: of the Makefile, which installs them in a checkout.

    Raises:
        PackageError: a package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise PackageError(
            f"{error.name} is not installed; it is of the extra {extra}: "
            f"pip install 't5repro[{extra}]', or make {target} in a checkout"
        ) from error


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the error for a failed write of `path`, with its cause and cure."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        cure = "the disk is full: free some space and run the same command again"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        cure = "no permission to write there: check the owner of the folder"
    else:
        cure = "check the disk and run the same command again"
    return StorageError(f"cannot write {path}: {error.strerror or error}; {cure}")
