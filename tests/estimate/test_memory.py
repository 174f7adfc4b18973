"""The formula of a step's memory, compared with the TPU compiler."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.load import load_run_files
from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.errors import ArtifactError
from t5repro.estimate.machines import machine_named
from t5repro.estimate.plan import estimate_run
from t5repro.estimate.text import memory_text
from t5repro.model.sizes import PUBLISHED_EMBEDDING_ROWS
from t5repro.plan.memory import training_memory

GIB = 2**30


@pytest.mark.parametrize(
    ("size", "inputs", "targets", "needed"),
    # docs/run_on_tpu.md: total of eight rows in bfloat16 on a core of v5e, without the program.
    [("small", 512, 114, 1.58), ("base", 512, 192, 4.88)],
)
def test_the_formula_agrees_with_the_tpu_compiler(
    size: str, inputs: int, targets: int, needed: float
) -> None:
    memory = training_memory(
        SIZES[size],
        PretrainSettings(batch_size=128, inputs_length=inputs, targets_length=targets),
        embedding_rows=PUBLISHED_EMBEDDING_ROWS,
        precision="bfloat16",
        chips=16,
        available=16 * GIB,
    )
    assert memory.needed / GIB == pytest.approx(needed, rel=0.1)
    assert memory.fits


@pytest.mark.parametrize(
    ("size", "mesh", "rows", "needed"),
    # docs/run_on_tpu.md: arguments and temporaries of a core, activations computed again.
    [("base", (2, 2), 8, 0.08 + 0.17), ("11b", (2, 8), 16, 0.23 + 0.51)],
)
def test_the_formula_of_a_mesh_agrees_with_the_tpu_compiler(
    size: str, mesh: tuple[int, int], rows: int, needed: float
) -> None:
    data, model = mesh
    one_block = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    memory = training_memory(
        SIZES[size].model_copy(update=one_block),
        PretrainSettings(batch_size=rows),
        embedding_rows=PUBLISHED_EMBEDDING_ROWS,
        precision="bfloat16",
        chips=data,
        shares=model,
        remat="block",
        available=16 * GIB,
    )
    assert memory.needed / GIB == pytest.approx(needed, rel=0.2)


ONLY_BY_FORMULA = {  # slices of the program that were not compiled
    ("small", "v5e:2x2", "4 x 1"),
    ("large", "v5e:2x2", "4 x 1"),
    ("11b", "v5e:8x8", "4 x 16"),
    ("11b", "v5p:2x2x4", "4 x 4"),
}


def test_the_page_has_the_memory_of_the_formula_for_each_slice() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/slices.py"), "--formula"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    page = (ROOT / "docs/run_on_tpu.md").read_text(encoding="utf-8").lower()
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines()[2:]]
    assert len(rows) > 10
    for size, slice_name, mesh, parts, memory, fits in rows:
        needed = memory.split()[0]
        start = f"| {size} | `{slice_name}` | {mesh} | {parts} |"
        listed = [line for line in page.splitlines() if line.startswith(start)]
        assert all(f" | {needed} | " in line for line in listed)
        assert len(listed) == (0 if (size, slice_name, mesh) in ONLY_BY_FORMULA else 1)
        assert fits.startswith("yes, with micro_batches")


def test_activations_that_are_computed_again_take_less_memory() -> None:
    needed = [
        training_memory(
            SIZES["base"],
            PretrainSettings(batch_size=128),
            embedding_rows=PUBLISHED_EMBEDDING_ROWS,
            precision="bfloat16",
            chips=8,
            remat=remat,
            available=16 * GIB,
        ).needed
        for remat in ("none", "dots", "block")
    ]
    assert needed[2] < needed[1] < 0.8 * needed[0]


def test_an_11b_fits_a_slice_that_shares_its_weights() -> None:
    def micro_batches(chips: int, shares: int) -> int:
        return training_memory(
            SIZES["11b"],
            PretrainSettings(batch_size=128),
            embedding_rows=PUBLISHED_EMBEDDING_ROWS,
            precision="bfloat16",
            chips=chips,
            shares=shares,
            remat="block",
            available=machine_named("v5e-64").kind.memory,
        ).micro_batches

    assert micro_batches(64, 1) == 0  # every chip has all of it
    assert micro_batches(4, 16) > 0


def test_options_and_the_boundary_objective_take_memory() -> None:
    def needed(size: str, training: TrainingSettings, texts: int = 1) -> float:
        return training_memory(
            SIZES[size],
            training,
            embedding_rows=32_128,
            texts=texts,
            precision="float32",
            chips=1,
            available=GIB,
        ).needed

    lengths = {"batch_size": 4, "inputs_length": 128, "targets_length": 20}
    plain, with_head = (
        PretrainSettings.model_validate({**lengths, "masked_lm": {"boundary_weight": weight}})
        for weight in (0, 1)
    )
    logits = pytest.approx(4 * 20 * 32_128 * 8)
    assert needed("spanbert_tiny", with_head) - needed("spanbert_tiny", plain) == logits
    detection, all_pieces = (
        PretrainSettings.model_validate({**lengths, "replaced_tokens": {"task": task}})
        for task in ("detection", "all_pieces")
    )
    logits = pytest.approx(4 * 128 * 32_128 * 8)
    assert needed("electra_tiny", all_pieces) - needed("electra_tiny", detection) == logits
    tuning = FinetuneSettings(**lengths)
    # Of ELECTRA's two networks fine-tuning keeps the activations of one.
    assert needed("electra_tiny", tuning) < needed("electra_tiny", detection)
    one, two = (needed("bert_tiny", tuning, texts) for texts in (1, 2))
    assert two - one == pytest.approx(
        needed("bert_tiny", tuning.model_copy(update={"batch_size": 8})) - one
    )


@pytest.mark.parametrize(
    ("available", "micro_batches", "words"),
    [(16, 1, "fits, "), (6, 2, "needs micro_batches 2, "), (1, 0, "does not fit, ")],
)
def test_the_micro_batches_with_which_a_step_fits_are_named(
    available: int, micro_batches: int, words: str
) -> None:
    memory = training_memory(
        SIZES["base"],
        PretrainSettings(batch_size=128),
        embedding_rows=PUBLISHED_EMBEDDING_ROWS,
        precision="bfloat16",
        chips=8,
        available=available * GIB,
    )
    assert memory.micro_batches == micro_batches
    assert memory_text(memory).startswith(words)


@pytest.mark.parametrize("optimizer", ["adamw", "adam_fairseq", "lamb"])
def test_the_moments_of_adam_are_two_arrays_of_the_size_of_the_weights(optimizer: str) -> None:
    needed = [
        training_memory(
            SIZES["base"],
            PretrainSettings(optimizer=name),
            embedding_rows=PUBLISHED_EMBEDDING_ROWS,
            precision="bfloat16",
            chips=8,
            available=16 * GIB,
        ).needed
        for name in ("adafactor", optimizer)
    ]
    assert needed[1] - needed[0] == pytest.approx(2 * 4 * 222_903_552, rel=0.01)


def test_the_largest_sizes_fit_as_the_arithmetic_of_their_weights_says() -> None:
    def micro_batches(size: str, machine: str) -> int:
        return training_memory(
            SIZES[size],
            PretrainSettings(batch_size=128),
            embedding_rows=PUBLISHED_EMBEDDING_ROWS,
            precision="bfloat16",
            chips=8,
            available=machine_named(machine).kind.memory,
        ).micro_batches

    # 3B: 21 GiB of weights and gradients on each chip; 11B: 84.
    assert micro_batches("3b", "v5e-8") == 0
    assert micro_batches("3b", "h100-8") > 0
    assert micro_batches("11b", "h100-8") == 0


def test_a_report_of_preflight_replaces_the_formula(tmp_path: Path) -> None:
    settings = load_run_files([Path("configs/base.yaml")])
    facts = {
        "slice": "v5e:2x4",
        "rows_per_core": 16,
        "needed_bytes": 3 * GIB,
        "hbm_bytes": 16 * GIB,
    }
    folder = tmp_path / "logs/base/preflight"
    folder.mkdir(parents=True)
    (folder / "baseline.json").write_text(json.dumps(facts))
    estimate = estimate_run(settings, machine_named("v5e-8"), root=tmp_path)
    (memory,) = [one.memory for one in estimate.nodes if one.node.rule == "pretrain"]
    assert memory is not None
    assert memory_text(memory) == "fits, 3.0 of 16.0 GiB (preflight)"
    # That of another number of chips says nothing about this one.
    estimate = estimate_run(settings, machine_named("v5e-16"), root=tmp_path)
    (memory,) = [one.memory for one in estimate.nodes if one.node.rule == "pretrain"]
    assert memory is not None
    assert memory.source == "formula"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"slice": 1}'])
def test_a_damaged_report_of_preflight_is_named(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "logs/base/preflight"
    folder.mkdir(parents=True)
    (folder / "baseline.json").write_text(text)
    settings = load_run_files([Path("configs/base.yaml")])
    with pytest.raises(
        ArtifactError, match=r"baseline\.json is (no report of the rule preflight|not JSON)"
    ):
        estimate_run(settings, machine_named("v5e-8"), root=tmp_path)
