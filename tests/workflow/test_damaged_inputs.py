"""One altered bit in a file between two stages is named before a stage reads the file."""

import argparse
import contextlib
import functools
import random
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from clones import SMALL, copy_clone, snakemake

from t5repro.cli.job_options import expected_inputs, job_of
from t5repro.cli.main import main, parser
from t5repro.errors import T5ReproError
from t5repro.jobs.table import JOBS
from t5repro.lineage.input_hashes import verify_inputs

pytestmark = pytest.mark.workflow

FLIPS = 1000
JOB = re.compile(
    r"^    input: (.*)\n(?:    .*\n)*Shell command: t5repro stage (.*)$", flags=re.MULTILINE
)
# `data` and `data_fetch` read what no stage wrote. `corpus` replaces c4_clean in runs of own text;
# its files are verified by the same kind of argument (tests/cli/test_stages.py).
NOT_IN_THIS_RUN = {"data", "data_fetch", "corpus", "sentences"}
BY_LINEAGE_PAGE = "report"  # reads the manifest of every job; tested below


class Job(NamedTuple):
    """A planned job: the words of its command, without the log, and its files of other stages."""

    words: list[str]
    inputs: set[Path]

    @property
    def stage(self) -> str:
        return self.words[0]

    def verify(self) -> list[Path]:
        """Verify the inputs as the command does; return them and their manifests."""
        expected = expected_inputs(job_of(self.stage, parsed(tuple(self.words))))
        verify_inputs(expected)
        return sorted({path for file in expected for path in (file.path, file.manifest)})


@functools.cache  # the parser of all subcommands takes longer to make than the inputs to verify
def parsed(words: tuple[str, ...]) -> argparse.Namespace:
    return parser().parse_args(("stage", *words))


@pytest.fixture(scope="module")
def chain(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the finished clone that a test may damage."""
    return copy_clone(finished, tmp_path_factory.mktemp("damaged") / "clone")


@pytest.fixture(scope="module")
def jobs(chain: Path) -> list[Job]:
    """Every job of the run but the one that checks the raw files."""
    plan = snakemake(chain, "-n", "-F", "-p", config=SMALL).stdout
    return [
        Job(words[: words.index("--log")], files_of_stages(inputs))
        for inputs, command in JOB.findall(plan)
        if (words := shlex.split(command))[0] != "data"
    ]


def files_of_stages(inputs: str) -> set[Path]:
    return {Path(name) for name in inputs.split(", ") if name.startswith("results/")}


@pytest.fixture(autouse=True)
def in_chain(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(chain)


@contextlib.contextmanager
def flipped(path: Path, choose: Callable[[int], int]) -> Iterator[None]:
    """Flip one bit of a file inside the block."""
    data = bytearray(path.read_bytes())
    bit = choose(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    yield
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def results() -> dict[Path, int]:
    """Return every file of the run and when it was written."""
    files = filter(Path.is_file, Path("results").rglob("*"))
    return {path: path.stat().st_mtime_ns for path in files}


def test_every_input_that_another_stage_wrote_is_verified(jobs: list[Job]) -> None:
    assert {job.stage for job in jobs} == JOBS.keys() - NOT_IN_THIS_RUN
    for job in jobs:
        verified = set(job.verify())
        if job.stage == BY_LINEAGE_PAGE:
            verified |= {path for path in job.inputs if path.name.endswith("manifest.json")}
        assert job.inputs <= verified, f"{job.stage} reads {job.inputs - verified} without a hash"


def test_of_1000_flipped_bits_between_stages_1000_are_named(jobs: list[Job]) -> None:
    chance = random.Random(16)
    kinds: dict[str, int] = {}
    files = {job.stage: [] for job in jobs}
    for job in jobs:
        files[job.stage] += [(job, path) for path in job.verify() if path.stat().st_size]
    for number in range(FLIPS):
        # Every stage in turn: most jobs read tasks.
        job, path = chance.choice(files[sorted(files)[number % len(files)]])
        with flipped(path, chance.randrange), pytest.raises(T5ReproError) as named:
            job.verify()
        assert path.name in str(named.value)
        kinds[path.suffix] = kinds.get(path.suffix, 0) + 1
    assert sum(kinds.values()) == FLIPS
    assert kinds.keys() >= {".parquet", ".ids", ".offsets", ".model", ".safetensors", ".jsonl"}
    assert kinds.keys() >= {".json", ".csv", ".txt", ".gz", ".tsv", ".tab"}


@pytest.mark.parametrize("stage", sorted(JOBS.keys() - NOT_IN_THIS_RUN))
def test_a_stage_refuses_an_altered_input_and_leaves_its_outputs(
    jobs: list[Job], stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job = next(job for job in jobs if job.stage == stage)
    path = max(job.verify(), key=lambda path: (path.suffix != ".json", path.stat().st_size))
    with flipped(path, lambda bits: bits // 2):
        before = results()
        assert main(["stage", *job.words]) == 1
        assert results() == before
    message = capsys.readouterr().err
    assert f"{path} has sha256 " in message
    assert "expects " in message


def test_the_report_refuses_an_altered_manifest_of_any_job(
    jobs: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    report = next(job for job in jobs if job.stage == BY_LINEAGE_PAGE)
    manifest = Path("results/demo/c4_dedup/baseline/manifest.json")
    text = manifest.read_text()
    manifest.write_text(text.replace('"units": 2', '"units": 3', 1))
    try:
        assert main(["stage", *report.words]) == 1
    finally:
        manifest.write_text(text)
    assert f"{manifest} was altered after its stage wrote it" in capsys.readouterr().err
