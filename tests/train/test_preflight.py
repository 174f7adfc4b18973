import importlib.util
import json
import subprocess
import sys
import tomllib

import pytest
from checkout import ROOT

pytest.importorskip("tensorflow")
from t5repro.config.load import load_settings
from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.training import TrainingSettings
from t5repro.config.stage_settings import stage_settings
from t5repro.train import preflight as module
from t5repro.train import tpu_compiler
from t5repro.train.preflight import (
    GIB,
    DoesNotFitError,
    PreflightError,
    ask,
    cure,
    facts_of,
    preflight,
    refusal,
    rows_per_core,
    table,
)

pytestmark = pytest.mark.keras

V5E = {"cores": 16, "kind": "TPU v5 lite"}
COSTS = {
    "argument_bytes": 4 * GIB,
    "output_bytes": 0,
    "temporary_bytes": 11 * GIB,
    "code_bytes": GIB // 2,
    "flops": 1e12,
    "bytes_accessed": 1e9,
    "seconds": 60.0,
}
TINY = {
    "model": {
        "d_model": 32,
        "d_ff": 64,
        "d_kv": 8,
        "num_heads": 4,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    },
    "vocab": {"vocab_size": 100, "extra_ids": 28},
    "pretrain": {"batch_size": 32, "inputs_length": 16, "targets_length": 8},
    "devices": {"kind": "tpu", "precision": "bfloat16"},
}


def interpreter():
    """Return an interpreter with the pinned compiler."""
    if importlib.util.find_spec("libtpu"):
        return sys.executable
    own = ROOT / ".venv-preflight" / "bin" / "python"
    if not own.is_file():
        pytest.skip("no interpreter has the packages of the extra preflight; make preflight")
    return str(own)


def stage(**change):
    settings = load_settings({**TINY, **change})
    return PretrainStage.model_validate(stage_settings(settings, "pretrain"))


def test_the_pins_are_those_of_the_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = [f"{name}=={version}" for name, version in tpu_compiler.PINNED.items()]
    assert extras["optional-dependencies"]["preflight"] == pinned


def test_packages_that_are_missing_are_named_with_the_cure(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    with pytest.raises(PreflightError, match=r"jax is not installed; preflight needs .*pip inst"):
        ask(str(tmp_path / "bin" / "python"), "describe", "v5e:4x4")


def test_other_versions_are_refused_with_those_that_are_needed(monkeypatch):
    monkeypatch.setattr(tpu_compiler.metadata, "version", lambda name: "9.9")
    fault = tpu_compiler.check_versions()
    assert fault == {"fault": "versions", "text": "found jax 9.9, jaxlib 9.9, libtpu 9.9"}
    assert "found jax 9.9, jaxlib 9.9, libtpu 9.9; preflight needs jax" in str(
        refusal(fault, "python", "v5e:4x4")
    )


def test_an_interpreter_that_is_not_there_is_named():
    with pytest.raises(PreflightError, match=r"'nowhere/python' cannot be started .*see --python"):
        ask("nowhere/python", "describe", "v5e:4x4")


def test_a_slice_must_be_named():
    with pytest.raises(PreflightError, match=r"set devices.slice or --slice, such as one of v5e"):
        preflight(stage(), slice_name="", python=sys.executable, report=None)


def test_rows_are_split_among_cores_and_parts():
    assert rows_per_core(TrainingSettings(batch_size=128), 16) == 8
    with pytest.raises(PreflightError, match="batch_size 128 is not a multiple of 24: 24 shares"):
        rows_per_core(TrainingSettings(batch_size=128), 24)


def test_the_verdict_compares_what_is_needed_with_the_memory_of_a_core():
    facts = facts_of("v5e:4x4", V5E, 8, COSTS)
    assert (facts["needed_bytes"], facts["hbm_bytes"]) == (15.5 * GIB, 16 * GIB)
    assert facts["fits"]
    assert "15.50 GiB, 97% of 16.00 GiB" in table(facts)
    assert "seconds" not in facts
    larger = facts_of("v5e:4x4", V5E, 8, {**COSTS, "output_bytes": GIB})
    assert not larger["fits"]
    assert "does not fit" in table(larger)
    with pytest.raises(PreflightError, match="memory of 'TPU x' is unknown; known chips:"):
        facts_of("x", {"cores": 1, "kind": "TPU x"}, 1, COSTS)


def test_a_step_that_does_not_fit_ends_with_another_code_and_a_cure(monkeypatch, tmp_path):
    answers = {"describe": V5E, "compile": {**COSTS, "temporary_bytes": 20 * GIB}}
    monkeypatch.setattr(module, "ask", lambda python, verb, *words: answers[verb])
    monkeypatch.setattr(module, "lowered_step", lambda settings, rows: b"")
    report = tmp_path / "report.json"
    with pytest.raises(DoesNotFitError, match=r"needs 24.50 GiB of a core's 16 GiB .*up to 2"):
        preflight(stage(), slice_name="v5e:4x4", python="", report=report)
    assert not report.exists()
    assert DoesNotFitError.exit_code == 3
    assert "a single row at a time" in cure(TrainingSettings(micro_batches=8), 8)
    full = refusal({"fault": "memory", "text": "Used 20G of 15.7G hbm"}, "", "v5e:4x4")
    assert isinstance(full, DoesNotFitError)


def test_an_unknown_slice_is_refused_by_the_compiler_itself():
    with pytest.raises(PreflightError, match=r"slice 'v9:4x4' is unknown \(INVALID_ARGUMENT"):
        ask(interpreter(), "describe", "v9:4x4")


@pytest.mark.slow
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_the_training_step_of_a_run_file_compiles_for_a_slice(tmp_path, micro_batches):
    python = interpreter()
    run_file = tmp_path / "run.yaml"
    changes = {**TINY, "pretrain": {**TINY["pretrain"], "micro_batches": micro_batches}}
    run_file.write_text(json.dumps(changes))
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            "t5repro",
            "stage",
            "preflight",
            "--settings",
            str(run_file),
            "--slice",
            "v5e:4x4",
            "--python",
            python,
            "--report",
            str(report),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(report.read_text())
    assert (facts["cores"], facts["rows_per_core"], facts["fits"]) == (16, 2, True)
    assert facts["flops_per_core"] > 0
    assert "verdict              fits" in done.stderr


LOWER = """
import sys
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.train.preflight import lowered_step
kind = {"pretrain": PretrainStage, "finetune": FinetuneStage}[sys.argv[1]]
settings = kind.model_validate_json(sys.argv[2])
print("lowered", len(lowered_step(settings, rows=2)))
"""
ONE_BLOCK = {"num_encoder_layers": 1, "num_decoder_layers": 1}
BORDERS = {
    "objective": "masked_lm",
    "loss_normaliser": "target_tokens",
    "inputs_length": 16,
    "targets_length": 4,
    "masked_lm": {"unit": "span", "boundary_weight": 1},
}
STRUCTURE = {
    **BORDERS,
    "targets_length": 5,
    "masked_lm": {"pair_task": "sentence_structure", "shuffle_share": 0.2},
}
IN_ANY_ORDER = {
    "objective": "permutation_lm",
    "loss_normaliser": "target_tokens",
    "inputs_length": 16,
    "targets_length": 4,
}
ON_TASKS = {"loss_normaliser": "target_tokens", "inputs_length": 16}


@pytest.mark.keras
@pytest.mark.parametrize(
    ("rule", "size", "change"),
    [
        ("pretrain", "spanbert_tiny", {"pretrain": BORDERS}),
        ("pretrain", "structbert_tiny", {"pretrain": STRUCTURE}),
        ("pretrain", "xlnet_tiny", {"pretrain": IN_ANY_ORDER}),
        (
            "finetune",
            "bert_tiny",
            {"finetune": ON_TASKS, "tasks": {"names": ["squad", "super_glue_copa", "glue_stsb"]}},
        ),
        (
            "finetune",
            "gpt_tiny",
            {
                "finetune": {**ON_TASKS, "answers": "labels", "lm_weight": 0.5},
                "tasks": {"names": ["super_glue_copa", "glue_mrpc"]},
            },
        ),
    ],
)
def test_steps_of_systems_before_t5_are_programs_for_the_compiler(rule, size, change) -> None:
    """With all heads, options and orders, in a process of its own."""
    settings = {
        "seed": 0,
        "vocab": {"vocab_size": 100, "extra_ids": 20},
        "devices": {},
        "model": SIZES[size].model_copy(update=ONE_BLOCK).model_dump(),
        **change,
    }
    done = subprocess.run(
        [sys.executable, "-c", LOWER, rule, json.dumps(settings)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 10_000
