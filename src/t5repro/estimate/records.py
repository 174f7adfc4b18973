"""Speeds of earlier jobs, from their records, and the nodes of a run that are done."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from t5repro.config.row_shapes import row_shape
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.estimate.machines import KINDS, slice_chips
from t5repro.estimate.work import Work, prediction_work, training_work
from t5repro.lineage.record import Record, read_records
from t5repro.lineage.record_index import read_indexes, records_in
from t5repro.lineage.redaction import redact
from t5repro.lineage.store import Folder
from t5repro.plan.memory import ON_DEVICE, TRAININGS, texts_of_row
from t5repro.plan.nodes import Key
from t5repro.plan.run_plan import Node
from t5repro.stages import BY_NAME

Records = Mapping[str, Record]  # by job, RUN/RULE/NODE


@dataclass(frozen=True)
class Sample:
    """A finished job: its work, machine and time.

    Attributes:
        job: name of the job, ``run/rule/node``.
        rule: name of the rule.
        kind: kind of chip.
        chips: number of chips; of a CPU threads.
        precision: `devices.precision`; empty for jobs without the model.
        shape: width, positions of a row and rows of a chip, by which trainings are compared.
        work: its work.
        output_bytes: bytes that it wrote.
        seconds: time from start to end.
    """

    job: str
    rule: str
    kind: str
    chips: int
    precision: str
    shape: tuple[float, ...]
    work: Work
    output_bytes: float
    seconds: float


def samples_of(records: Records) -> list[Sample]:
    """Return the finished jobs of records that tell a speed."""
    return [sample for job, record in sorted(records.items()) for sample in _sample(job, record)]


def _sample(job: str, record: Record) -> Iterator[Sample]:
    """Yield the sample of a record; none if its settings are of another version."""
    rule, end = record.rule, record.end
    if end is None or not end.ok or rule not in BY_NAME:
        return
    read, written = (
        float(sum(file.bytes for file in files)) for files in (end.inputs, end.outputs)
    )
    if rule not in ON_DEVICE:
        yield Sample(job, rule, "cpu", 1, "", (), Work(input_bytes=read), written, end.seconds)
        return
    try:
        settings: Any = stage_model(rule).model_validate(record.start.settings)
        machine = _machine(settings)
        work = _work(rule, settings, end.numbers)
    # Records of earlier versions may have other settings; they tell no speed, which is no fault.
    except (KeyError, TypeError, ValueError, ValidationError):
        return
    if machine and work.flops:
        kind, chips = machine
        shape, precision = shape_of(rule, settings, chips), settings.devices.precision
        yield Sample(job, rule, kind, chips, precision, shape, work, written, end.seconds)


def _machine(settings: Any) -> tuple[str, int] | None:
    """Return kind and number of chips; None for a GPU, because records do not name its kind."""
    devices = settings.devices
    if devices.kind == "cpu":
        return "cpu", devices.intra_op_threads
    kind, _, topology = devices.slice.partition(":")
    # A slice is named such as v3:2x2.
    return (kind, slice_chips(topology)) if devices.kind == "tpu" and kind in KINDS else None


def _work(rule: str, settings: Any, numbers: Mapping[str, Any]) -> Work:
    if rule in TRAININGS:
        return training_work(rule, settings)
    examples = {
        name.split(".")[1]: int(value)
        for name, value in numbers.items()
        if name.startswith("tasks.") and name.endswith(".examples")
    }
    return prediction_work(
        settings.model,
        settings.evaluate,
        settings.vocab,
        examples,
        layers=settings.finetune,
        models=len(settings.evaluate.ensemble) or 1,
    )


def shape_of(rule: str, settings: Any, chips: int) -> tuple[float, ...]:
    """Return width, positions of a row, and rows of a chip."""
    if rule in TRAININGS:
        training = getattr(settings, rule)
        row = row_shape(settings.model, training, texts=texts_of_row(rule, settings))
        length, rows = row.positions, training.batch_size * row.texts
    else:
        evaluate = settings.evaluate
        length, rows = evaluate.inputs_length + evaluate.max_decode_length, evaluate.batch_size
    return float(settings.model.d_model), float(length), rows / chips


def examples_in(records: Records, run: str) -> dict[str, int]:
    """Return task -> rows of its validation split, as counted when a run's tasks were built."""
    examples = {}
    for job, record in records.items():
        words = job.split("/")
        if words[:2] == [run, "tasks"] and record.end and "validation.rows" in record.end.numbers:
            examples[words[-1]] = int(record.end.numbers["validation.rows"])
    return examples


def done_nodes(root: Path, run: str, nodes: Sequence[Node]) -> set[Key]:
    """Return the nodes with sealed jobs of exactly their present settings.

    A node is done only if its upstream nodes are. Changed code is not noticed: `snakemake -n`
    tells.

    Args:
        root: the checkout.
        run: name of the run.
        nodes: nodes of the run, earlier stages first.
    """
    index = read_indexes(Folder(root), []).get(run, {})
    if not index:
        return set()
    sealed = set(records_in(index))
    by_node: dict[Key, list[Record]] = {}
    for job, record in read_records(Folder(root)).items():
        if f"records/{job}.json" in sealed and record.run == run:
            name = record.node.partition("/")[0]  # a shard has its node's name
            by_node.setdefault(Key(record.rule, name), []).append(record)
    done: set[Key] = set()
    for node in nodes:
        jobs = by_node.get(node.key, [])
        # Records contain redacted settings, so the present ones are redacted as well.
        settings = redact(stage_settings(node.settings, node.rule)) if jobs else None
        is_current = jobs and all(_is_of(record, settings) for record in jobs)
        if is_current and set(node.upstream) <= done:
            done.add(node.key)
    return done


def _is_of(record: Record, settings: Any) -> bool:
    return record.end is not None and record.end.ok and record.start.settings == settings
