"""A stage's command and its rule's command line are made from its job, so they agree."""

import dataclasses
import importlib
import inspect
import re
import typing
from pathlib import Path
from typing import Annotated

import pytest
from checkout import ROOT

from t5repro.cli.job_options import expected_inputs, job_of, named_files
from t5repro.cli.main import parser
from t5repro.cli.parsers import subcommands
from t5repro.cli.stages import FUNCTIONS
from t5repro.config.load import load_settings
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.errors import SettingsError
from t5repro.files import sha256_of, write_manifest
from t5repro.jobs.corpus import VocabSampleJob
from t5repro.jobs.fields import Read, fields_of
from t5repro.jobs.table import JOBS
from t5repro.plan.commands import command_of, params_of
from t5repro.plan.options import OPTIONS
from t5repro.stages import BY_NAME, STAGES

RULES = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
LITERAL = re.compile(r'^\s*"t5repro stage (\w+)"((?:\n\s*"[^\n]*")+)', flags=re.MULTILINE)


def test_every_stage_has_a_job_a_function_and_a_command() -> None:
    stages = {stage.name for stage in STAGES}
    assert set(JOBS) == set(FUNCTIONS) == stages - {"preflight"}  # it writes no result
    assert set(subcommands(subcommands(parser())["stage"])) == stages


@pytest.mark.parametrize("stage", JOBS)
def test_a_function_takes_the_job_of_its_stage_with_the_settings_of_its_stage(stage: str) -> None:
    assert typing.get_type_hints(JOBS[stage])["settings"] is stage_model(stage)
    module = importlib.import_module(f"t5repro.{BY_NAME[stage].module}")
    job, *others = inspect.signature(getattr(module, FUNCTIONS[stage])).parameters.values()
    assert job.annotation is JOBS[stage]
    assert {other.name for other in others} <= {"code", "devices"}


UNVERIFIED = {  # files that a job reads and no manifest attests, and why
    "withdrawn": "tracked by git",
    "data": "verified with the raw files it lists",
    "model_file": "a file of others with a hash that the rule data compared",
    "tokenizer": "files next to it, compared likewise",
}


def test_every_file_that_a_stage_reads_is_verified() -> None:
    roles = {field.name: field.role for job in JOBS.values() for field in fields_of(job)}
    reads = {name: role for name, role in roles.items() if isinstance(role, Read)}
    assert {name for name, role in reads.items() if role.origin == "unverified"} == set(UNVERIFIED)
    options = {name for name, role in roles.items() if getattr(role, "kind", "") == "option"}
    # `root` is the folder of files that other options name, `start_from` like `model_file`.
    assert options == {"root", "start_from", "task", "kept_steps"}


@pytest.mark.parametrize("stage", JOBS)
def test_the_command_line_of_a_rule_has_every_option_of_the_command(stage: str) -> None:
    command = subcommands(subcommands(parser())["stage"])[stage]
    options = set(command._option_string_actions) - {"-h", "--help"}
    used = set(re.findall(r"--[a-z-]+", command_of(stage)))
    assert used | {"--resume-changed"} == options | {"--resume-changed"}


def test_every_rule_calls_the_command_of_its_stage_with_its_parameters() -> None:
    called = re.findall(r'command_of\("(\w+)"\)', RULES)
    written = dict(LITERAL.findall(RULES))
    assert sorted([*called, *written]) == sorted(stage.name for stage in STAGES)
    assert sorted(re.findall(r'\*\*params_of\("(\w+)"', RULES)) == sorted(called)
    for name, words in written.items():
        known = set(subcommands(subcommands(parser())["stage"])[name]._option_string_actions)
        assert set(re.findall(r'" (--[a-z-]+)', words)) <= known


def test_the_words_of_the_plan_are_fields_of_the_job() -> None:
    for stage, words in OPTIONS.items():
        assert words.keys() <= {field.name for field in fields_of(JOBS[stage])}


@dataclasses.dataclass(frozen=True)
class AddedJob(VocabSampleJob):
    """Draw text, but leave out the pages of a list.

    Attributes:
        left_out: manifest of the pages to leave out.
    """

    left_out: Annotated[Path | None, Read(listed=("*.list",))] = None


def test_an_input_added_to_a_job_is_in_its_command_its_rule_and_its_checks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two further places: its files in `plan/inputs.py`, and its use in the entry module."""
    monkeypatch.setitem(JOBS, "vocab_sample", AddedJob)
    assert " --left-out {input.left_out:q} " in command_of("vocab_sample")
    assert "left_out" not in params_of("vocab_sample")
    monkeypatch.chdir(tmp_path)
    for folder, name in (("c4", "en.parquet"), ("left", "pages.list")):
        Path(folder).mkdir()
        path = Path(folder, name)
        path.write_text(name)
        manifest = Path(folder, "manifest.json")
        write_manifest(manifest, rule="x", settings={}, inputs=[], outputs=[path], counters={})
    run_file = Path("run.yaml")
    run_file.write_text("seed: 3")
    words = "--settings run.yaml --corpus c4/manifest.json --sample s.txt --manifest m.json"
    command = ["stage", "vocab_sample", *words.split(), "--left-out", "left/manifest.json"]
    arguments = parser().parse_args(command)
    job = job_of("vocab_sample", arguments)
    assert job.left_out == Path("left/manifest.json")
    text = " ".join(
        subcommands(subcommands(parser())["stage"])["vocab_sample"].format_help().split()
    )
    assert "manifest of the pages to leave out" in text
    expected = {file.path: file.sha256 for file in expected_inputs(job)}
    listed = Path("left/pages.list")
    assert expected == {path: sha256_of(path) for path in (Path("c4/en.parquet"), listed)}
    assert Path("left/manifest.json") in named_files(job)


def test_options_without_a_word_are_absent_files(tmp_path: Path) -> None:
    settings = stage_settings(load_settings({}), "pretrain")
    values = stage_model("pretrain").model_validate(settings).model_dump_json()
    words = ["--settings", values, "--folder", "f", "--work", "w", "--manifest", "m"]
    arguments = parser().parse_args(["stage", "pretrain", *words, "--tokens", "--start-from", "s"])
    job = job_of("pretrain", arguments)
    assert (job.tokens, job.sentences, job.start_from) == (None, None, Path("s"))
    assert (job.loggers, job.resume_changed) == ((), False)


def test_files_are_named_by_their_folder_their_own_name_or_a_word() -> None:
    run = ["--settings", "{}", "--manifest", "m", "--folder", "f"]
    words = ["stage", "tasks", *run, "--task", "t", "--files", "train=a", "train=b", "test=c"]
    with pytest.raises(SettingsError, match="argument 'x' must be NAME=FILE"):
        job_of("tasks", parser().parse_args([*words, "x"]))
    settings = stage_model("tasks").model_validate(stage_settings(load_settings({}), "tasks"))
    words[3] = settings.model_dump_json()
    job = job_of("tasks", parser().parse_args(words))
    assert job.files == {"train": [Path("a"), Path("b")], "test": [Path("c")]}
    score = stage_model("evaluate_score").model_validate(
        stage_settings(load_settings({}), "evaluate_score")
    )
    run = ["--settings", score.model_dump_json(), "--manifest", "m", "--scores", "s"]
    files = ["--predictions", "p/squad.jsonl", "--train", "t/squad/train.jsonl"]
    job = job_of(
        "evaluate_score",
        parser().parse_args(["stage", "evaluate_score", *run, *files, "--kept-steps", "5", "9"]),
    )
    assert job.predictions == {"squad": Path("p/squad.jsonl")}
    assert job.train == {"squad": Path("t/squad/train.jsonl")}
    assert list(job.kept_steps) == [5, 9]


def test_a_field_without_a_role_is_refused() -> None:
    @dataclasses.dataclass
    class Job:
        """A job.

        Attributes:
            extra: a file.
        """

        extra: Path

    with pytest.raises(TypeError, match="has no role"):
        fields_of(Job)
