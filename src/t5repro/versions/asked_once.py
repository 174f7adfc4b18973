"""Lets Snakemake find out once what does not change while it plans.

Snakemake reads the arguments of a function from its code for each job, and formats the command of a
job three times to print it, in a dry run that hides jobs as well (Snakemake 9.27,
`get_function_params` and `Job.log_info`; upstream issue 3330 is about the time of dry runs). With
the search for garbage, that took two fifths of the time of a plan of 5,000 jobs.
"""

import gc
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

# Objects between two searches for garbage. Jobs live as long as the plan, and each search passes
# over all of them.
OBJECTS = 1_000_000


def ask_once() -> None:
    """Make Snakemake keep the arguments of functions, and the command of a job that it prints."""
    import snakemake.rules
    from snakemake import common
    from snakemake.jobs import Job

    if isinstance(Job.shellcmd, OneCommand):
        return  # another graph of this process has done it
    common.get_function_params = cache(common.get_function_params)
    snakemake.rules.get_function_params = common.get_function_params
    Job.shellcmd = OneCommand(Job.shellcmd)
    Job.log_info = if_shown(Job.shellcmd.kept_while(Job.log_info))
    gc.set_threshold(OBJECTS)


def shows_jobs(output: Any) -> bool:
    """Return whether a run prints its jobs, writes them to its log file or passes them to a plugin.

    Args:
        output: Snakemake's settings of its output.
    """
    from snakemake.settings.enums import Quietness

    is_quiet = output.dryrun and Quietness.RULES in (output.quiet or ())
    return not is_quiet or bool(output.log_handler_settings)


def if_shown(log_info: Callable[..., None]) -> Callable[..., None]:
    """Return a function that prints a job, and does nothing in a run that shows no jobs."""

    @wraps(log_info)
    def call(job: Any, *arguments: Any, **options: Any) -> None:
        if shows_jobs(job.dag.workflow.output_settings):
            log_info(job, *arguments, **options)

    return call


class OneCommand:
    """The command of a job, formatted once while a function runs.

    Args:
        shellcmd: Snakemake's property.
    """

    def __init__(self, shellcmd: Any) -> None:
        self._format = shellcmd.fget
        self._kept: tuple[Any, str | None] = (None, None)

    def __get__(self, job: Any, owner: type) -> Any:
        if job is None:
            return self
        return self._kept[1] if job is self._kept[0] else self._format(job)

    def kept_while(self, function: Callable[..., None]) -> Callable[..., None]:
        """Return a function of a job that keeps the command as long as it runs."""

        @wraps(function)
        def call(job: Any, *arguments: Any, **options: Any) -> None:
            self._kept = (job, self._format(job))
            try:
                function(job, *arguments, **options)
            finally:
                self._kept = (None, None)

        return call
