"""The corpus drawn beside the tasks."""

import json

import numpy as np
import pytest

from t5repro.config.schema import Settings
from t5repro.config.sections.finetune import FinetuneStage, GroupedFinetuneSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.config.stage_settings import stage_settings
from t5repro.inputs.corpus_mixture import ROW_UNITS, MixedInputs, load_finetuning_inputs

ROWS = 5


@pytest.fixture
def mixed(tmp_path, write_tokens, vocabulary):
    """Load a mixture of two tasks and a corpus of 40 documents."""
    write_tokens([60] * 40)
    ids = np.fromfile(tmp_path / "train.ids", "<u2")
    (3 + ids % 100).astype("<u2").tofile(tmp_path / "train.ids")
    examples = {}
    for task in ("one", "two"):
        examples[task] = tmp_path / task / "train.jsonl"
        examples[task].parent.mkdir()
        rows = [{"inputs": f"the mill {n}", "targets": "turns"} for n in range(12)]
        examples[task].write_text("".join(json.dumps(row) + "\n" for row in rows))

    def load(*, corpus=True, **change):
        tree = Settings(
            pretrain=PretrainSettings(noise_mask="random_spans"),
            finetune=GroupedFinetuneSettings(
                **{
                    "batch_size": ROWS,
                    "inputs_length": 32,
                    "targets_length": 24,
                    "corpus_examples": 24,
                    **change,
                }
            ),
        )
        values = stage_settings(tree, "finetune")
        values["vocab"] |= VocabSettings(vocab_size=120, extra_ids=20).model_dump()
        return load_finetuning_inputs(
            FinetuneStage.model_validate(values),
            examples=examples,
            vocabulary=vocabulary,
            seed=0,
            tokens=tmp_path / "manifest.json" if corpus else None,
        )

    return load


def arrays(batches):
    return [{**features, "targets": targets} for features, targets in batches]


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a[name], b[name]) for a, b in zip(one, other, strict=True) for name in a
    )


def test_a_step_depends_on_its_number_alone(mixed):
    inputs = mixed()
    assert isinstance(inputs, MixedInputs)
    whole = arrays(inputs.batches(first_step=0, steps=9))
    assert all(batch["encoder_ids"].shape == (ROWS, 32) for batch in whole)
    assert all(batch["targets"].shape == (ROWS, 24) for batch in whole)
    for first in (1, 4, 8):
        assert same(arrays(inputs.batches(first_step=first, steps=9 - first)), whole[first:])
    assert same(arrays(mixed().batches(first_step=0, steps=9)), whole)


def test_rows_are_those_of_the_corpus_and_of_the_tasks_in_their_order(mixed):
    inputs = mixed()
    steps = 12
    got = arrays(inputs.batches(first_step=0, steps=steps))
    rows = [{name: batch[name][n] for name in batch} for batch in got for n in range(ROWS)]
    of_corpus = inputs.corpus_rows(ROWS * steps)
    assert 0 < of_corpus < ROWS * steps
    streams = [
        [
            {name: value[0] for name, value in batch.items()}
            for batch in arrays(source.batches(first_step=0, steps=count))
        ]
        for source, count in ((inputs.corpus, of_corpus), (inputs.tasks, ROWS * steps - of_corpus))
    ]
    for number, row in enumerate(rows):
        corpus = inputs.corpus_rows(number + 1) > inputs.corpus_rows(number)
        expected = streams[0 if corpus else 1].pop(0)
        assert all(np.array_equal(row[name], expected[name]) for name in row), number
    assert streams == [[], []]


def test_the_share_of_examples_drawn_is_the_share_asked(mixed):
    counted = mixed().counters(first_step=0, steps=200)
    corpus = counted["corpus"]
    assert corpus["examples_share_asked"] == 0.5  # 24 of 24 + 12 + 12
    assert corpus["examples_share_drawn"] == pytest.approx(0.5, abs=0.05)
    equal = mixed(mixture="equal").counters(first_step=0, steps=10)["corpus"]
    assert equal["examples_share_asked"] == pytest.approx(1 / 3, abs=1e-6)
    limited = mixed(mixture_limit=6).counters(first_step=0, steps=10)["corpus"]
    assert limited["examples_share_asked"] == pytest.approx(1 / 3, abs=1e-6)


def test_a_stated_rate_of_the_corpus_knows_no_limit(mixed):
    counters = mixed(mixture_limit=6, corpus_rate="stated").counters(first_step=0, steps=10)
    assert counters["corpus"]["examples_share_asked"] == pytest.approx(24 / (24 + 12), abs=1e-6)


def test_without_the_corpus_batches_are_those_of_the_tasks(mixed):
    assert not isinstance(mixed(corpus=False, corpus_examples=0), MixedInputs)


def test_rows_of_the_corpus_are_counted_exactly_and_stand_evenly(mixed):
    inputs = mixed()
    counts = [inputs.corpus_rows(rows) for rows in range(400)]
    steps = np.diff(counts)
    assert set(steps) <= {0, 1}
    assert counts[-1] == 399 * inputs.corpus_units // ROW_UNITS
    gaps = np.diff(np.flatnonzero(steps))
    assert gaps.max() - gaps.min() <= 1
