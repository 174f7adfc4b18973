"""Reads every state of a SLURM job, so that no run waits for a job that has ended.

The plugin ``snakemake-executor-plugin-slurm`` (2.8) counts a job as running unless SLURM reports
one of ten words. Three answers of a real SLURM 22.05 are none of them, and the run would
wait forever:

1. ``CANCELLED by 1000``, what ``sacct`` says of a job that somebody cancelled;
2. ``PREEMPTED``, which is final where SLURM does not requeue the job (upstream issue 109);
3. no answer at all, after which the plugin forgets its jobs (upstream issue 207).
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

from t5repro.errors import SettingsError

PLUGIN = "snakemake_executor_plugin_slurm"
LOST = "CANCELLED"  # a word that the plugin knows: the job has ended without its outputs
PREEMPTED = "PREEMPTED"
States = dict[str, str]
Query = Callable[[str, Any], Awaitable[tuple[States | None, float | None]]]


def read_all_states(workflow: Any) -> None:
    """Let the plugin see each job that has ended, if it runs the jobs of a workflow.

    Raises:
        SettingsError: array jobs are asked for.
    """
    plugin: Any = sys.modules.get(PLUGIN)
    settings = workflow.executor_settings
    if plugin is None or not isinstance(settings, plugin.ExecutorSettings):
        return
    if settings.array_jobs:
        # Upstream pull request 174: the command of each task contains that of the first.
        raise SettingsError(
            f"slurm-array-jobs is {settings.array_jobs!r}: in an array of the plugin each task "
            "waits for the outputs of the first, and fails without them; leave the option out. "
            "--groups c4_clean=clean --group-components clean=16 submits 16 cleaning jobs as one"
        )
    plugin.query_job_status = reading_all(plugin.query_job_status, requeues=settings.requeue)


def reading_all(query: Query, *, requeues: bool) -> Query:
    """Return the plugin's question for the states of jobs with answers that it understands.

    Args:
        query: asks SLURM, and returns job -> state and seconds, or None twice without an answer.
        requeues: whether SLURM starts preempted jobs again; they are then left to it.
    """

    async def read(command: str, logger: Any) -> tuple[States, float]:
        states, seconds = await query(command, logger)
        if states is None:
            logger.warning(f"SLURM does not answer; its jobs count as running: {command}")
            return {}, 0.0
        words_of_jobs = {
            job: _state_word(state, requeues=requeues) for job, state in states.items()
        }
        return words_of_jobs, seconds or 0.0

    return read


def _state_word(state: str, *, requeues: bool) -> str:
    """Return the first word of a state; `LOST` for a job that SLURM has preempted for good."""
    word = state.partition(" ")[0]
    return LOST if word == PREEMPTED and not requeues else word
