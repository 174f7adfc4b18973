"""A plan prints the same commands, and formats each of them once."""

from collections.abc import Mapping

from t5repro.versions.asked_once import OneCommand


class Job:
    """A job as Snakemake has it: the command is formatted whenever it is asked for."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words
        self.times = 0

    @property
    def shellcmd(self) -> str:
        """Return the command."""
        self.times += 1
        return " ".join(self.words.values())

    def log_info(self, *, fail: bool = False) -> None:
        """Ask for the command three times, as Snakemake does."""
        self.printed = [self.shellcmd, self.shellcmd, self.shellcmd]
        if fail:
            raise RuntimeError


def kept_jobs() -> type[Job]:
    """Return a class of jobs as `ask_once` leaves Snakemake's."""
    names = {"__init__": Job.__init__, "log_info": Job.log_info, "shellcmd": Job.shellcmd}
    jobs = type("KeptJob", (), names)
    jobs.shellcmd = OneCommand(Job.shellcmd)  # type: ignore[attr-defined]
    jobs.log_info = jobs.shellcmd.kept_while(Job.log_info)  # type: ignore[attr-defined]
    return jobs


def test_a_printed_job_formats_its_command_once() -> None:
    job = kept_jobs()({"program": "t5repro", "command": "stage"})
    job.log_info()
    assert job.printed == ["t5repro stage"] * 3
    assert job.times == 1


def test_a_command_is_formatted_again_when_the_job_has_changed() -> None:
    job = kept_jobs()({"program": "t5repro"})
    job.log_info()
    job.words = {"program": "dvc"}
    assert job.shellcmd == "dvc"
    job.log_info()
    assert job.printed == ["dvc"] * 3


def test_a_command_is_not_kept_after_an_error() -> None:
    job = kept_jobs()({"program": "t5repro"})
    try:
        job.log_info(fail=True)
    except RuntimeError:
        job.words = {"program": "dvc"}
    assert job.shellcmd == "dvc"


def test_another_job_has_its_own_command_while_one_is_printed() -> None:
    jobs = kept_jobs()
    other = jobs({"program": "dvc"})

    class Printing(jobs):  # type: ignore[misc, valid-type]
        """A job that asks for the command of another."""

        def log_info(self) -> None:
            """Ask for both commands."""
            self.printed = [self.shellcmd, other.shellcmd]

    Printing.log_info = jobs.shellcmd.kept_while(Printing.log_info)  # type: ignore[attr-defined]
    job = Printing({"program": "t5repro"})
    job.log_info()
    assert job.printed == ["t5repro", "dvc"]
