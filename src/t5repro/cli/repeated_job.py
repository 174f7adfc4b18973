"""A program for `certificate --engine`: repeats a training's first steps, or answers.

python -m t5repro.cli.repeated_job --engine jax --folder FOLDER RULE OPTIONS-OF-ITS-JOB
"""

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from t5repro.cli.arguments import add_settings
from t5repro.cli.job_options import add_options, job_of
from t5repro.config.sections.devices import EngineName
from t5repro.evaluate.repeated_answers import repeat_answers
from t5repro.jobs.predict import PredictJob
from t5repro.train.repeated_steps import comparable, repeat


def main(words: Sequence[str] | None = None) -> None:
    """Repeat the job that the command line describes, or its first steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=get_args(EngineName), required=True)
    parser.add_argument("--precision", choices=["float32", "float64"], default="float32")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument(
        "--folder", type=Path, required=True, help="receives states and losses, or answers"
    )
    parser.add_argument("--reference", type=Path, help="folder of an earlier repetition")
    parser.add_argument("--free", action="store_true", help="start only step 1 from the reference")
    parser.add_argument("job", nargs=argparse.REMAINDER, help="RULE and the options of its job")
    arguments = parser.parse_args(words)
    rule, *options = arguments.job
    of_job = argparse.ArgumentParser()
    add_settings(of_job)
    add_options(of_job, rule)
    job = job_of(rule, of_job.parse_args(options))
    places = {"engine": arguments.engine, "precision": arguments.precision}
    job = dataclasses.replace(job, settings=comparable(job.settings, rule, **places))
    if isinstance(job, PredictJob):
        repeat_answers(job, arguments.folder, arguments.reference)
        return
    repeat(
        job,
        arguments.folder,
        steps=arguments.steps,
        reference=arguments.reference,
        free=arguments.free,
    )


if __name__ == "__main__":
    main()
