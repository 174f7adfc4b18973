"""Memory of jobs on a CPU, as a resource and as a reason to refuse a run."""

from pathlib import Path

import pytest

from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.plan import memory
from t5repro.plan.memory import cpu_memory, machine_bytes
from t5repro.plan.resources import model_megabytes

GIGA = 1e9
SMALL = {"use": ["sizes/small"], "vocab.vocab_size": 200, "vocab.extra_ids": 50}


def settings_of(**change: object) -> Settings:
    return load_settings({**SMALL, **change})


def test_mem_mb_of_a_training_on_a_cpu_contains_the_activations_of_its_batch() -> None:
    def megabytes(**change: object) -> int:
        return model_megabytes("pretrain", settings_of(**change))

    # The run file of five lines took 23.2 GB of a machine that has no more, and was killed.
    assert megabytes() > 24_000
    eighth = megabytes(**{"pretrain.batch_size": 16})
    one = megabytes(**{"pretrain.batch_size": 1})
    assert (megabytes() - one) / (eighth - one) == pytest.approx(127 / 15, rel=0.01)
    assert megabytes(**{"pretrain.micro_batches": 8}) == pytest.approx(eighth, rel=0.05)


def test_without_a_step_no_batch_takes_memory() -> None:
    sizes = {
        cpu_memory(
            "pretrain", settings_of(**{"pretrain.steps": 0, "pretrain.batch_size": rows})
        ).needed
        for rows in (1, 128)
    }
    # Libraries, and four copies of 60 million weights.
    assert max(sizes) == min(sizes) < 2e9


def test_mem_mb_with_an_accelerator_is_the_hosts() -> None:
    assert model_megabytes("pretrain", settings_of(**{"devices.kind": "gpu"})) == 2206


def test_logits_of_a_large_vocabulary_take_memory() -> None:
    few, many = (
        cpu_memory("pretrain", settings_of(**{"vocab.vocab_size": size})).needed
        for size in (200, 32_000)
    )
    # 128 rows of 192 targets, 8 bytes of logit and gradient each; and the embedding.
    assert many - few == pytest.approx(31_872 * (128 * 192 * 8 + 512 * 8), rel=0.02)


def test_the_micro_batches_that_fit_leave_a_tenth_of_the_machine() -> None:
    found = cpu_memory("pretrain", settings_of(), available=16 * GIGA)
    assert not found.fits
    assert 128 % found.micro_batches == 0
    fitting = settings_of(**{"pretrain.micro_batches": found.micro_batches})
    assert cpu_memory("pretrain", fitting).needed <= 0.9 * 16 * GIGA
    fewer = settings_of(**{"pretrain.micro_batches": found.micro_batches // 2})
    assert cpu_memory("pretrain", fewer).needed > 0.9 * 16 * GIGA


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"evaluate.beam_tasks": ["wmt_en_de"], "evaluate.beam_width": 8},
        {
            "use": ["systems/bert", "sizes/bert_tiny"],
            "tasks.segments": True,
            "vocab.vocab_size": 300,
        },
    ],
)
def test_a_prediction_that_does_not_fit_is_told_its_largest_batch(
    change: dict[str, object],
) -> None:
    tasks = {
        "tasks.names": ["glue_sst2", *(["wmt_en_de"] if "evaluate.beam_tasks" in change else [])]
    }
    settings = settings_of(**{**tasks, **change, "evaluate.batch_size": 100_000})
    found = cpu_memory("evaluate_predict", settings, available=4 * GIGA)
    assert not found.fits
    assert 0 < found.batch_size < 100_000
    fitting = settings_of(**{**tasks, **change, "evaluate.batch_size": found.batch_size})
    assert cpu_memory("evaluate_predict", fitting, available=4 * GIGA).fits


def test_a_limit_of_a_control_group_is_the_memory_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "CGROUP_LIMITS", (limit, tmp_path / "absent"))
    physical = machine_bytes()
    limit.write_text("max\n")
    assert machine_bytes() == physical
    limit.write_text("1000000\n")
    assert machine_bytes() == 1e6
