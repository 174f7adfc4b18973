"""The raw files that jobs read, as paths; each must be in `data.sources`."""

from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from functools import cache, cached_property

from t5repro.config import task_files
from t5repro.config.own_text import files_of_tasks, selected, text_files
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import C4Settings
from t5repro.data import crawl_lists
from t5repro.data.paths import raw_path
from t5repro.errors import SettingsError


class RawFiles:
    """The raw files of a run.

    Args:
        settings: settings of the run.
        as_written: returns these settings with the withdrawn files that the run file lists. Only
            the division of the crawl asks for them.
    """

    def __init__(self, settings: Settings, as_written: Callable[[], Settings]) -> None:
        self._settings = settings
        self._as_written = as_written
        self.names = task_files.raw_files(settings)
        self.splits = cache(self._splits)
        self._crawl = cache(self._crawl_files)

    def path(self, name: str) -> str:
        """Return the path of a raw file or of a folder of raw files."""
        return raw_path(self._settings.data, name).as_posix()

    def paths(self, names: Iterable[str]) -> list[str]:
        """Return the paths of raw files."""
        return [self.path(name) for name in names]

    def listed_path(self, name: str, key: str) -> str:
        """Return the path of the raw file that a setting names.

        Raises:
            SettingsError: `data.sources` does not list it.
        """
        if name not in self.names:
            raise SettingsError(
                f"{key} names {name!r}, which data.sources does not list; list it there with "
                "origin, licence and sha256"
            )
        return self.path(name)

    def crawl_of_shard(self, c4: C4Settings, shard: int) -> list[str]:
        """Return the WET files of one cleaning job.

        Raises:
            SettingsError: there are more jobs than files, or the list of paths is not listed.
        """
        if c4.crawl_paths:
            return [self.listed_path(c4.crawl_paths, "c4.crawl_paths")]
        files = self._crawl(tuple(c4.crawl))
        if len(files) < c4.clean_shards:
            raise SettingsError(
                f"c4.clean_shards is {c4.clean_shards}, but c4.crawl {list(c4.crawl)} matches "
                f"{len(files)} files of data.sources; lower it, or list the files"
            )
        # A withdrawn file leaves its place empty: other jobs keep their files.
        return self._available(crawl_lists.files_of_shard(files, shard, c4.clean_shards))

    def crawl_sample(self, c4: C4Settings) -> list[str]:
        """Return the WET files for the training of Punkt.

        Raises:
            SettingsError: the list of paths is not listed.
        """
        if c4.crawl_paths:
            return [self.listed_path(c4.crawl_paths, "c4.crawl_paths")]
        files = self._crawl(tuple(c4.crawl))
        return self._available(crawl_lists.evenly_spaced(files, c4.punkt_sample_files))

    def wat_of_shard(self, c4: C4Settings, shard: int) -> list[str]:
        """Return the WAT file of each of the WET files of one cleaning job, if signals need them.

        Raises:
            SettingsError: `data.sources` does not list one.
        """
        files = self._crawl(tuple(c4.crawl))
        return self._wat(c4, crawl_lists.files_of_shard(files, shard, c4.clean_shards))

    def wat_of_sample(self, c4: C4Settings) -> list[str]:
        """Return the WAT file of each of the WET files for the training of Punkt, if needed.

        Raises:
            SettingsError: `data.sources` does not list one.
        """
        files = self._crawl(tuple(c4.crawl))
        return self._wat(c4, crawl_lists.evenly_spaced(files, c4.punkt_sample_files))

    def _wat(self, c4: C4Settings, wet: Iterable[str]) -> list[str]:
        """Return the WAT file of each of the WET files that are not withdrawn."""
        if c4.signals.source != "wat" or c4.crawl_paths:  # a list of paths names both
            return []
        names = [crawl_lists.wat_name(name) for name in wet if name in self.names]
        for name in names:
            if name not in self.names:
                raise SettingsError(
                    f"c4.signals.source is wat, and data.sources does not list {name!r}, the WAT "
                    "file of a WET file; list it there with origin, licence and sha256, or set "
                    "c4.signals.source to none or text"
                )
        return self.paths(names)

    def own_text(self, settings: Settings) -> tuple[list[str], list[str]]:
        """Return the files of own text for training, and those for validation.

        Raises:
            SettingsError: the settings name none, or a file is for both.
        """
        if not settings.corpus.files:
            raise SettingsError(
                "corpus.files is empty: this run makes its corpus from the crawl; name files "
                "there, or ask for the stage c4"
            )
        train, validation = text_files(settings.corpus, set(self.names), self._task_files)
        return self.paths(train), self.paths(validation)

    @cached_property
    def _task_files(self) -> frozenset[str]:
        return files_of_tasks(self._settings)

    def _splits(self, task: str) -> dict[str, list[str]]:
        """Return split -> files of a task."""
        files = task_files.task_files(self._settings, task)
        return {split: self.paths(names) for split, names in files.items()}

    def _crawl_files(self, patterns: tuple[str, ...]) -> list[str]:
        """Return the WET files as the run file lists them, including withdrawn ones."""
        names = set(task_files.raw_files(self._as_written()))
        files = {name for pattern in patterns for name in selected(names, pattern, fnmatch)}
        return sorted(name for name in files if not crawl_lists.is_wat(name))

    def _available(self, names: Iterable[str]) -> list[str]:
        """Return the paths of the files that are not withdrawn."""
        return [self.path(name) for name in names if name in self.names]
