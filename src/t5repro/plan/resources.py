"""Threads, memory and devices of jobs, as resources of Snakemake.

Resources are not parameters: another value reruns nothing, because no byte of a result changes.
"""

import json
from math import ceil

from t5repro.config.schema import Settings
from t5repro.config.stage_settings import engine_settings
from t5repro.model.sizes import parameter_count
from t5repro.plan.memory import cpu_memory

HOST_THREADS = 8  # feed an accelerator; a profile changes them with set-threads
HOST_MEGABYTES = 1500  # libraries and batches


def model_threads(settings: Settings, cores: int | None) -> int:
    """Return the cores of a job that computes with the model: all of them, except on a CPU.

    There a job uses `devices.intra_op_threads`, so several jobs share the cores.

    Args:
        settings: settings of the job's node.
        cores: cores of Snakemake; an executor of a cluster knows no number of them.
    """
    if settings.devices.kind == "cpu":
        return settings.devices.intra_op_threads
    return cores or HOST_THREADS


def model_megabytes(rule: str, settings: Settings) -> int:
    """Return the memory of a job that computes with the model.

    With an accelerator, which has the activations, libraries and batches take `HOST_MEGABYTES` of
    the host; weights, gradients, slots and a copy for the checkpoint take 4 bytes each for a
    parameter.
    """
    if settings.devices.kind == "cpu":
        return ceil(cpu_memory(rule, settings).needed / 1_000_000)
    parameters = parameter_count(settings.model, settings.vocab.vocab_size)
    return HOST_MEGABYTES + 16 * parameters // 1_000_000


def vocabulary_megabytes(settings: Settings) -> int:
    """Return the memory of the training of a vocabulary."""
    return 500 + 40 * settings.vocab.sample_chars // 1_000_000


def engine(settings: Settings) -> str:
    """Return the engine of the corpus as JSON: another one writes the same bytes."""
    return json.dumps(engine_settings(settings), sort_keys=True)


def loggers(settings: Settings) -> str:
    """Return the loggers of the trainings as JSON."""
    return json.dumps([logger.model_dump(mode="json") for logger in settings.run.loggers])


def resume(settings: Settings) -> str:
    """Return the option to resume from a checkpoint of other settings; empty if it is not set."""
    return "--resume-changed" if settings.run.resume_changed else ""
