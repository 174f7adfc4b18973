"""States of SLURM jobs, as its Snakemake plugin gets to see them."""

import asyncio
import logging
from types import SimpleNamespace

import pytest

from t5repro.errors import SettingsError
from t5repro.versions import slurm_states
from t5repro.versions.slurm_states import read_all_states, reading_all

plugin = pytest.importorskip(
    "snakemake_executor_plugin_slurm", reason="make slurm installs the plugin"
)
LOGGER = logging.getLogger("test")


def answers(states: dict[str, str] | None, *, requeues: bool = False) -> dict[str, str]:
    """Return what the plugin is told when SLURM answers so."""

    async def query(command: str, logger: logging.Logger) -> tuple[object, float | None]:
        return states, None if states is None else 0.1

    return asyncio.run(reading_all(query, requeues=requeues)("sacct", LOGGER))[0]


def test_a_job_that_somebody_cancelled_has_ended() -> None:
    assert answers({"7": "CANCELLED by 1000", "8": "CANCELLED"}) == {
        "7": "CANCELLED",
        "8": "CANCELLED",
    }


def test_a_preempted_job_has_ended_unless_slurm_starts_it_again() -> None:
    assert answers({"7": "PREEMPTED"}) == {"7": "CANCELLED"}
    assert answers({"7": "PREEMPTED"}, requeues=True) == {"7": "PREEMPTED"}


@pytest.mark.parametrize("state", ["COMPLETED", "RUNNING", "PENDING", "TIMEOUT", "NODE_FAIL"])
def test_other_states_are_as_slurm_says_them(state: str) -> None:
    assert answers({"7": state}) == {"7": state}


def test_jobs_count_as_running_while_slurm_does_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert answers(None) == {}
    assert "SLURM does not answer; its jobs count as running: sacct" in caplog.text


def test_arrays_are_refused_with_what_to_use_instead() -> None:
    workflow = SimpleNamespace(executor_settings=plugin.ExecutorSettings(array_jobs="c4_clean"))
    with pytest.raises(SettingsError, match="'c4_clean': .* --groups c4_clean=clean"):
        read_all_states(workflow)


def test_other_executors_and_an_absent_plugin_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = plugin.query_job_status
    read_all_states(SimpleNamespace(executor_settings=None))
    monkeypatch.setattr(slurm_states, "PLUGIN", "no_such_plugin")
    read_all_states(SimpleNamespace(executor_settings=object()))
    assert plugin.query_job_status is query


def test_the_plugin_asks_with_the_wrapped_question(monkeypatch: pytest.MonkeyPatch) -> None:
    async def query(command: str, logger: logging.Logger) -> tuple[dict[str, str], float]:
        return {"7": "CANCELLED by 0"}, 0.1

    monkeypatch.setattr(plugin, "query_job_status", query)
    read_all_states(SimpleNamespace(executor_settings=plugin.ExecutorSettings()))
    assert asyncio.run(plugin.query_job_status("sacct", LOGGER))[0] == {"7": "CANCELLED"}
