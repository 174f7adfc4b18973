"""SIGKILL of commands and jobs before one of their writes; the same command again makes them whole.

Each moment is drawn from all writes of the command: every file opened for writing, rename,
deletion, new folder, flush to the disk and start of another process. The command runs in a fork, so
that libraries are imported once, in a session of its own, which is killed as a whole.

As a program it kills as often as asked, in a finished and committed checkout, and prints a table:

    python tests/support/killed_commands.py CHECKOUT --kills 200
"""

import argparse
import importlib
import mmap
import os
import random
import shlex
import shutil
import signal
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clones import copy_clone, snakemake

from t5repro.files import TEMPORARY_PREFIX, sha256_of
from t5repro.lineage.command_leftovers import remove_leftovers_of_commands
from t5repro.versions.seal import TEMPORARY_OF_DVC

MOMENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
# What differs between equal runs, or belongs to other programs.
OF_TOOLS = (".git/", ".snakemake/", ".dvc/tmp/", ".dvc/cache/runs/", "logs/", "work/", "records/")
PARTIAL = (TEMPORARY_PREFIX, ".partial-")
# Replaced and never changed in place: links make copies cheap, and a write in place a fault.
SHARED = (
    ".git/objects",
    ".dvc/cache",
    "data",
    "docs",
    "examples",
    "results",
    "src",
    "studies",
    "tests",
)
NOT_RUN = 99
T5REPRO, DVC = "t5repro.cli.main", "dvc.cli"  # modules of a `main`
OF_MODELS = ("pretrain", "finetune", "evaluate_predict", "weights")  # begin the names
REMOTE = "store/"  # a folder in the checkout, so that its files are compared
PULLED = (".dvc/cache/files", "results/demo/c4", "results/demo/tokens")  # from there
SCORES = "results/demo/evaluate_score/baseline/scores.json"
A_PASSAGE = "Old brick swells when it is wet"  # of the crawl
ROWS = "exports/rows.csv"


@dataclass(frozen=True)
class Command:
    """A command to kill.

    Attributes:
        name: of the table.
        words: after the name of the program.
        begin: brings a copy of the checkout to the state in which the command has work to do.
        compares: folders and files that equal runs make equal, although tools own them.
        program: the module of its `main`.
    """

    name: str
    words: Sequence[str]
    begin: Callable[[Path], None] = lambda folder: None
    compares: tuple[str, ...] = ()
    program: str = T5REPRO


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or the signal below 0, its writes and its output."""

    code: int
    writes: int
    printed: str


def job_commands(snakemake_output: str) -> list[Command]:
    """Return the jobs in what ``snakemake -n -p --forceall`` printed, one for each rule."""
    commands: dict[str, Command] = {}
    for line in snakemake_output.splitlines():
        _, is_command, text = line.partition("Shell command: t5repro ")
        if is_command:
            words = shlex.split(text)
            begin = _without("data")
            if "--manifest" in words:
                folder = Path(words[words.index("--manifest") + 1]).parent.relative_to("results")
                begin = _without(*(f"{root}/{folder}" for root in ("results", "work", "records")))
            commands.setdefault(words[1], Command(words[1], words, begin))
    return list(commands.values())


def _without(*names: str) -> Callable[[Path], None]:
    """Return what removes files, and the outputs, checkpoints and record of a job."""

    def remove(checkout: Path) -> None:
        for name in names:
            shutil.rmtree(checkout / name, ignore_errors=True)
            for file in (checkout / name, checkout / f"{name}.json"):
                file.unlink(missing_ok=True)

    return remove


def writing_commands(url: str, key: Path) -> list[Command]:
    """Return the commands that write, for a finished and committed demo.

    Args:
        url: a page of its crawl.
        key: a private key.
    """
    weights = "results/demo/pretrain/baseline/manifest.json"
    vocabulary = "results/demo/vocab/baseline/sentencepiece.model"
    words = {
        "withdraw": f"withdraw {url} --reason ticket",
        "withdraw from cache": f"withdraw {url} --reason ticket --delete-cache",
        "seal": "seal --allow-stale",
        "sign": f"sign --key {key} --allow you@example.org",
        "dvc generate": "dvc generate",
        "dvc settings": "dvc settings",
        "dvc rehydrate": "dvc rehydrate",
        "config generate": "config generate",
        "weights export": f"weights export --form huggingface --weights {weights} "
        f"--vocabulary {vocabulary} --folder exports/hf",
        "weights import": "weights import exports/hf --folder exports/own",
        "weights publish": "weights publish results/demo --folder exports/hub",
        "dvc push": "push",
        "dvc pull": "pull",
        "export": "export --format prov --output exports/prov.json",
        "runs": "runs --html exports/runs.html",
        "pages": f"pages {SCORES} --csv exports/pages.csv",
        "trace": f"trace --text '{A_PASSAGE}'",
        "tasks new": f"tasks new {ROWS} --from results/demo --out exports/rows.yaml",
        "init": "init exports/project",
    }
    has_remote = _after(f"remote add --local --default folder {REMOTE}", DVC)
    begin = {
        "seal": _without("dvc.lock", "records/demo.index"),
        "dvc generate": _without("dvc.yaml"),
        "dvc settings": _without("configs/resolved/demo"),
        "dvc rehydrate": _without(".snakemake/metadata"),
        "config generate": _without("configs/schema", "docs/settings.md", "configs/resolved/code"),
        "weights import": _after(words["weights export"]),
        "dvc push": has_remote,
        "dvc pull": _in_turn(has_remote, _after("push", DVC), _without(*PULLED)),
        "tasks new": _with_rows,
    }
    compares = {"seal": ("records/",), "dvc rehydrate": (".snakemake/metadata",)}
    program = dict.fromkeys(("dvc push", "dvc pull"), DVC)
    return [
        Command(
            name,
            shlex.split(text),
            begin.get(name, _without()),
            compares.get(name, ()),
            program.get(name, T5REPRO),
        )
        for name, text in words.items()
    ]


def _after(text: str, program: str = T5REPRO) -> Callable[[Path], None]:
    """Return what runs another command before."""

    def prepare(checkout: Path) -> None:
        made = run(checkout, shlex.split(text), program=program)
        assert made.code == 0, made.printed

    return prepare


def _in_turn(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return what does all steps."""

    def prepare(checkout: Path) -> None:
        for step in steps:
            step(checkout)

    return prepare


def _with_rows(checkout: Path) -> None:
    (checkout / "exports").mkdir(exist_ok=True)
    rows = [f"row number {number},{'yes' if number % 2 else 'no'}" for number in range(60)]
    (checkout / ROWS).write_text("\n".join(["text,label", *rows, ""]), encoding="utf-8")


def run(folder: Path, words: Sequence[str], kill_before: int = 0, program: str = T5REPRO) -> Ended:
    """Run a command in a fork; kill it before the write of this number, unless that is 0."""
    counter = mmap.mmap(-1, 8)
    log = folder.parent / "printed"
    if (process := os.fork()) == 0:
        try:
            os._exit(_child(folder, words, kill_before, counter, log, program))
        finally:
            os._exit(NOT_RUN)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, struct.unpack("q", counter[:])[0], log.read_text(errors="replace"))


def _child(
    folder: Path, words: Sequence[str], at: int, counter: mmap.mmap, log: Path, program: str
) -> int:
    os.setsid()
    os.chdir(folder)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    fsync = os.fsync

    def flushed(descriptor: Any) -> None:
        count()
        fsync(descriptor)

    def count() -> None:
        (writes,) = struct.unpack("q", counter[:])
        counter[:] = struct.pack("q", writes + 1)
        if writes + 1 == at:
            os.killpg(0, signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" or (
            (event in MOMENTS or (event == "open" and _writes(*arguments)))
            and _is_inside(folder, arguments[event == "os.rename"])
        ):
            count()

    os.fsync = flushed
    sys.addaudithook(hook)
    try:
        return int(importlib.import_module(program).main(list(words)))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return NOT_RUN
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _writes(path: Any, mode: str | None, flags: int) -> bool:
    return bool(set(mode or "") & set("wxa+")) or bool(flags & WRITING)


def _is_inside(folder: Path, path: Any) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False  # a descriptor
    name = os.fsdecode(path)
    return os.path.abspath(name).startswith(f"{folder}{os.sep}") and "__pycache__" not in name


def hashes(folder: Path, compares: Sequence[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of the files that equal runs make equal."""
    names = ((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*"))
    return {
        name: sha256_of(path)
        for name, path in names
        if path.is_file()
        and (not name.startswith(OF_TOOLS) or name.startswith(tuple(compares) or ("\0",)))
        # DVC never deletes them; a seal does in the cache.
        and not (name.startswith((REMOTE, ".dvc/cache")) and name.endswith(".tmp"))
    }


def faults_of_kills(
    checkout: Path, command: Command, moments: random.Random, kills: int
) -> Iterator[tuple[int, int, str]]:
    """Kill a command so many times; yield moment, number of writes, and the fault if there is one.

    After each kill a file is as before or as afterwards, unless its name is that of a temporary
    one; the same command then ends as if it had not been killed, with the same bytes.
    """
    with tempfile.TemporaryDirectory(dir=checkout.parent) as folder:
        begun, whole, killed = (Path(folder) / name for name in ("begun", "whole", "killed"))
        command.begin(copy_clone(checkout, begun, SHARED))
        before = hashes(begun, command.compares)
        copy_clone(begun, whole, SHARED)
        unkilled = run(whole, command.words, program=command.program)
        after = hashes(whole, command.compares)
        if unkilled.code != 0 or not unkilled.writes:
            yield 0, unkilled.writes, f"code {unkilled.code}: {unkilled.printed[-600:]}"
            return
        for _ in range(kills):
            moment = moments.randint(1, unkilled.writes)
            shutil.rmtree(killed, ignore_errors=True)
            copy_clone(begun, killed, SHARED)
            stopped = run(killed, command.words, moment, command.program)
            half = _half_files(hashes(killed, command.compares), before, after)
            if command.words[0] == "stage":
                remove_leftovers_of_commands(killed)  # as a run does before its first job
            again = run(killed, command.words, program=command.program)
            ended = hashes(killed, command.compares)
            fault = ""
            if stopped.code not in (-signal.SIGKILL, 0):  # 0: fewer writes than the first run
                fault = f"not killed, but code {stopped.code}: {stopped.printed[-300:]}"
            elif half:
                fault = f"half-written: {half[:3]}"
            elif again.code != 0:
                fault = f"again: code {again.code}: {again.printed[-600:]}"
            elif ended != after:
                unequal = sorted(name for name, _ in ended.items() ^ after.items())
                fault = f"other bytes: {sorted(set(unequal))[:3]}"
            yield moment, unkilled.writes, fault


def _half_files(now: dict[str, str], before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [
        name
        for name, sha256 in now.items()
        if sha256 not in (before.get(name), after.get(name))
        and not any(part.startswith(PARTIAL) for part in Path(name).parts)
        and not TEMPORARY_OF_DVC.fullmatch(Path(name).name)
        # DVC writes its own files in place, and checks an object of a folder when it pushes again.
        and not name.startswith(("data.dvc", ".dvc/", REMOTE))
        and name != "withdrawn/unfinished.json"
    ]


def main() -> int:
    """Kill the jobs and commands of a checkout in turn, and print a line for each kill."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="names of jobs or commands")
    arguments = parser.parse_args()
    commands = [
        command
        for command in all_commands(arguments.checkout.resolve())
        if command.name in (arguments.only or [command.name])
    ]
    import_libraries(models=any(command.name.startswith(OF_MODELS) for command in commands))
    faults = total = 0
    for number, command in enumerate(commands):
        kills = len(range(number, arguments.kills, len(commands)))  # as many of each
        moments = random.Random(f"{arguments.seed} {command.name}")
        for moment, writes, fault in faults_of_kills(
            arguments.checkout.resolve(), command, moments, kills
        ):
            total += moment > 0
            faults += bool(fault)
            said = fault or "same bytes"
            print(f"{command.name:20} {moment:5} of {writes:5}  {said}", flush=True)
    print(f"seed {arguments.seed}")
    print(f"{total} kills of {len(commands)} commands, {faults} faults")
    return 1 if faults else 0


def all_commands(checkout: Path) -> list[Command]:
    """Return all jobs and commands of a checkout."""
    with tempfile.TemporaryDirectory(dir=checkout.parent) as folder:
        planned = copy_clone(checkout, Path(folder) / "clone", SHARED)
        shutil.rmtree(planned / "data")
        text = snakemake(planned, "-n", "-p", "--forceall").stdout
    key = checkout.parent / "key"
    if not key.is_file():
        made = run(checkout, ["export", "--new-key", str(key)])
        assert made.code == 0, made.printed
    url = "http://www.hill-and-dale.example/en/2016/page-0429.html"
    return [*job_commands(text), *writing_commands(url, key)]


def import_libraries(*, models: bool) -> None:
    """Import once what the forks need: TensorFlow takes longer than most of the jobs."""
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.engines.devices import set_environment

    set_environment(DevicesSettings())
    names = ("dvc.repo", "snakemake.api", "t5repro.cli.stages", "pyarrow.parquet")
    for name in (*names, *["keras"][:models]):
        importlib.import_module(name)


if __name__ == "__main__":
    sys.exit(main())
