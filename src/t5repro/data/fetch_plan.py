"""Cost of fetching the files of a list of WET paths: files, bytes, hours and disk.

Answers `t5repro crawl plan`, before anything is fetched. A crawl has tens of thousands of files of
similar sizes, so the servers are asked for the sizes of an evenly spaced sample.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from t5repro.data.crawl_lists import evenly_spaced, read_path_list, wat_name
from t5repro.data.paths import leaves_folder
from t5repro.data.transfer import ADDRESSES, AbsentError, size_of
from t5repro.errors import RawDataError, SettingsError

# 7.62 and 18.23 TiB in 64,000 files each, by Common Crawl's announcement of CC-MAIN-2019-09.
ASSUMED_FILE_BYTES = {"WET": 130_911_000, "WAT": 313_189_000}
SECONDS_PER_HOUR = 3600
BITS_PER_BYTE = 8
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_RATE = re.compile(r"(\d+(?:\.\d+)?) ?([kMGT]?)(B|bit)/s")


class Kind(NamedTuple):
    """The files of one kind.

    Attributes:
        name: ``WET`` or ``WAT``.
        sizes: bytes of the files of the sample, as far as their servers stated them.
        absent: addresses of the sample that do not exist.
        unanswered: for each other address of the sample why its size is unknown.
    """

    name: str
    sizes: Sequence[int]
    absent: Sequence[str]
    unanswered: Sequence[str]

    @property
    def asked(self) -> int:
        """Number of files of the sample."""
        return len(self.sizes) + len(self.absent) + len(self.unanswered)

    @property
    def file_bytes(self) -> float:
        """Mean size of a file; an assumption if no server stated one."""
        if self.sizes:
            return sum(self.sizes) / len(self.sizes)
        return ASSUMED_FILE_BYTES[self.name]

    def bytes_of(self, files: int) -> float:
        """Return the expected size of so many files of the list; some may not exist."""
        existing = 1 - len(self.absent) / self.asked if self.asked else 1
        return files * existing * self.file_bytes


class FetchPlan(NamedTuple):
    """The cost of fetching a crawl.

    Attributes:
        files: WET files of the list.
        refused: listed paths that leave `c4.crawl_prefix`; they are not part of the crawl.
        kinds: WET files, and WAT files if the run reads their signals.
    """

    files: int
    refused: int
    kinds: Sequence[Kind]

    @property
    def file_bytes(self) -> float:
        """Mean size of a WET file and its WAT file."""
        return sum(kind.file_bytes for kind in self.kinds)

    def bytes_of(self, files: int) -> float:
        """Return the expected size of so many WET files of the list and their WAT files."""
        return sum(kind.bytes_of(files) for kind in self.kinds)


def plan_fetch(path_list: Path, prefix: str, *, sample: int, with_wat: bool = False) -> FetchPlan:
    """Return the cost of fetching the files of a list.

    Args:
        path_list: list of WET paths, plain or gzip.
        prefix: address before each path (`c4.crawl_prefix`).
        sample: number of files of each kind to ask the servers for their sizes; 0 asks for none.
        with_wat: whether the WAT file beside each WET file is fetched as well
            (`c4.signals.source`).

    Raises:
        RawDataError: the list cannot be read, the prefix is not an address, all files of a kind are
            absent, or the name of a file says of no WAT file.
    """
    if not prefix.startswith(ADDRESSES):
        raise RawDataError(
            f"c4.crawl_prefix is {prefix!r}, and only files of an address are fetched; pass "
            f"--prefix with one of {', '.join(ADDRESSES)}, such as https://data.commoncrawl.org/"
        )
    listed = read_path_list(path_list)
    names = [name for name in listed if not leaves_folder(name)]
    asked = evenly_spaced(names, sample) if sample else []
    kinds = [_ask("WET", (prefix + name for name in asked))]
    if with_wat:
        kinds.append(_ask("WAT", (prefix + wat_name(name) for name in asked)))
    return FetchPlan(len(names), len(listed) - len(names), kinds)


def _ask(name: str, addresses: Iterable[str]) -> Kind:
    """Return what the servers say of the sizes of files.

    Raises:
        RawDataError: none of them exists.
    """
    sizes: list[int] = []
    absent: list[str] = []
    unanswered: list[str] = []
    for address in addresses:
        try:
            size = size_of(address)
        except AbsentError:
            absent.append(address)
        except RawDataError as error:
            unanswered.append(str(error))
        else:
            if size is None:
                unanswered.append(f"{address} states no size")
            else:
                sizes.append(size)
    if absent and not (sizes or unanswered):
        raise RawDataError(
            f"{absent[0]} does not exist, nor does any of the {len(absent)} {name} files whose "
            "sizes were requested; check c4.crawl_prefix and the list"
        )
    return Kind(name, sizes, absent, unanswered)


def parse_rate(text: str) -> float:
    """Return the bytes per second of a rate such as ``100MB/s`` or ``1Gbit/s``.

    Raises:
        SettingsError: it is not a rate, or 0.
    """
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _PREFIXES[match[2]] if match else 0.0
    if not match or not rate:
        raise SettingsError(
            f"--rate {text!r} is no rate; it must be a number above 0 with a unit of bytes or bits "
            "per second, such as 100MB/s or 1Gbit/s"
        )
    return rate / (BITS_PER_BYTE if match[3] == "bit" else 1)


def plan_lines(plan: FetchPlan, *, rate: float, shards: int, parts: int, punkt: int) -> list[str]:
    """Return a plan as lines of text.

    Args:
        plan: the plan.
        rate: bytes per second of all connections together.
        shards: number of cleaning jobs (`c4.clean_shards`).
        parts: number of files that a job writes (`c4.clean_parts`), one after another.
        punkt: number of files on which Punkt is trained, which are fetched for it too.
    """
    punkt = min(punkt, plan.files)
    files = plan.files + punkt
    job_files = -(-plan.files // (shards * parts))
    hours = plan.bytes_of(files) / rate / SECONDS_PER_HOUR
    total = _amount(plan.bytes_of(plan.files))
    with_wat = " and the WAT file of each" if len(plan.kinds) > 1 else ""
    lines = [
        f"files     {plan.files:,} WET files{with_wat}"
        + (f", and {punkt} of them for Punkt" if punkt else ""),
        *(f"size      {_size_text(kind, several=bool(with_wat))}" for kind in plan.kinds),
        f"transfer  {_amount(plan.bytes_of(files))}, {hours:,.1f} hours at {_amount(rate)}/s",
        f"disk      {_amount(job_files * plan.file_bytes)} for each cleaning job that runs at a "
        f"time ({job_files:,} files; c4.clean_shards {shards}, c4.clean_parts {parts}); on Spark "
        f"{_amount(plan.file_bytes)} for each task; {total} to keep all files",
    ]
    for kind in plan.kinds:
        if kind.absent:
            lines.append(
                f"absent    {len(kind.absent)} of {kind.asked} files, such as {kind.absent[0]}"
            )
        if kind.unanswered:
            lines.append(
                f"unknown   {len(kind.unanswered)} of {kind.asked} sizes: {kind.unanswered[0]}"
            )
    if plan.refused:
        lines.append(f"refused   {plan.refused} paths of the list, which leave c4.crawl_prefix")
    return lines


def _size_text(kind: Kind, *, several: bool) -> str:
    per = f"per {kind.name} file" if several else "per file"
    if not kind.sizes:
        return (
            f"{_amount(kind.file_bytes)} {per}: an assumption, the mean of CC-MAIN-2019-09; no "
            "server stated a size"
        )
    basis = f"as their servers state for {len(kind.sizes):,} of them"
    return (
        f"{_amount(kind.file_bytes)} {per} on average, {_amount(min(kind.sizes))} to "
        f"{_amount(max(kind.sizes))}, {basis}"
    )


def _amount(size: float) -> str:
    """Return a number of bytes with three digits and a decimal unit."""
    factor, prefix = max(
        (factor, name) for name, factor in _PREFIXES.items() if factor <= max(size, 1)
    )
    return f"{size / factor:.3g} {prefix}B"
