"""The bits of batches, which no change may move: the weights of every run depend on them."""

import hashlib
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.pretrain import Denoiser, PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.inputs.batches import Batch
from t5repro.inputs.finetuning import TaskInputs, Tokenised
from t5repro.inputs.pretraining import CorpusInputs, load_corpus_inputs
from t5repro.inputs.task_mixture import Mixture
from t5repro.objectives.table import OBJECTIVES

DOCUMENTS = [100, 50, 200, 9, 77, 31, 140, 4, 66]
DENOISERS = (
    Denoiser(mode_token="NLU"),
    Denoiser(objective="prefix_lm", noise_density=0.25, mode_token="S2S"),
    Denoiser(noise_density=0.5, mean_noise_span_length=8, mode_token="NLG", weight=2),
)
SETTINGS: dict[str, dict[str, Any]] = {
    **{objective: {"objective": objective} for objective in OBJECTIVES},
    "random_spans": {"noise_mask": "random_spans", "final_sentinel": True},
    "mixture_of_denoisers": {"objective": "mixture_of_denoisers", "denoisers": DENOISERS},
}
# SHA-256 of steps 0, 1 and 1000 for both kinds of network. They were taken from the batches that
# TensorFlow made before NumPy did.
STREAM = {
    "replace_spans": "680c0098ca56290fe0f21fcfb833c84ca183d71bc93c95fef5ebdc263a98e5bd",
    "drop_tokens": "e70328b4f43aff7340c5b3f19046c0bf097dffb8daa6fcdfc2e93904476b42e3",
    "mass_style": "9535d53133517077fcae4180f652b54abf28cd26b47e168b8ec82ff316b56120",
    "bert_style": "d646fe582411ba7c218db22eac0edcd4b6bf2b03e175f70051bdb1f984131b35",
    "deshuffling": "0b59387afe4ad9ef826449a303bcf859297f08566b31d827ff5beae26fbdaa63",
    "prefix_lm": "90b3d14b2a16cf7e405d804c76645806773d471be97819ae60f94e4b94f9a7ef",
    "lm": "64ac9e16d8df2011ddeb2e50f75a01b09a0992405413289284f8c1d2c53539b5",
    "random_spans": "18ba517c4593ba68c8767e64ff0268dfac2378ccf33d884e9fd7bf24058d5030",
    "mixture_of_denoisers": "2c06162adf87c3e97bbcb7c71307d2e9f21b28bc5b7ebb7adee0a407a05412ab",
}
PACKED = {
    "replace_spans": "e958794c5f805313e72987fce04de2206335936481aeba915fb0f73aaeab1718",
    "drop_tokens": "71c9b1c79dc3e910ad1b261d4414324652d2c1e20346156cbd644ba1d24195fa",
    "mass_style": "9a2c9f379556d9115cefba69caefe24998b0a6967b117ef3ed51c0dbf6cf4b5c",
    "bert_style": "467fc642a3f490a49a0884c6307206345147196ea2c90895a844f4233330206a",
    "deshuffling": "09231d7ac4fd24e51f60f92754de83da17a4dfd99df5e1c9418e79f7d3a0f9f8",
    "prefix_lm": "5cc57f6b74680c97cac79d6b3a47911bd0e3a8917fc51bb8d1a004f72acb5ae8",
    "lm": "6ba91d06ff3e02ae7ad2af683676e4044375afc7e77b0a35bf69de21a06eb9cb",
    "random_spans": "6f051342b74ffdc1f7ef20e69fa6ed64012100dbc4525e714d1423478a439594",
    "mixture_of_denoisers": "901200a79e63803470b6156c07f6300263dfb9cde5369e67dcaf3a3b613f1aff",
}
TASKS = "08686aafaab81477824fbe3228110c058df48f287b71e6ee910c4299a6b5c6dd"
LATE = 10_000


def digest(batches: Iterable[Batch]) -> str:
    """Return the SHA-256 of names, shapes, types and values."""
    state = hashlib.sha256()
    for features, targets in batches:
        for name, array in sorted({**features, "targets": np.asarray(targets)}.items()):
            values = np.asarray(array)
            state.update(f"{name} {values.shape} {values.dtype.str}\n".encode())
            state.update(values.tobytes())
    return state.hexdigest()


def known_steps(*sources: CorpusInputs | TaskInputs) -> Iterable[Batch]:
    for source in sources:
        yield from source.batches(first_step=0, steps=2)
        yield from source.batches(first_step=1000, steps=1)


Corpus = Callable[..., CorpusInputs]


@pytest.fixture
def corpus(write_tokens: Callable[..., tuple[Path, Path]], vocab: VocabSettings) -> Corpus:
    def load(*, name: str = "replace_spans", stream: bool = True, joined: bool = False):
        ids, offsets = write_tokens(DOCUMENTS)
        plan = {"noise_mask": "iid", "inputs_length": 32, "targets_length": 34, "batch_size": 4}
        settings = PretrainSettings(**plan | SETTINGS[name], concatenate_documents=stream)
        return load_corpus_inputs(
            settings, ids=ids, offsets=offsets, vocab=vocab, seed=0, joined=joined
        )

    return load


def tasks(*, joined: bool = False) -> TaskInputs:
    """Return examples of made ids, so that no vocabulary decides the digest."""
    sides = []
    for shortest, longest in ((4, 30), (2, 12)):
        lengths = (shortest + np.arange(420) * 7 % (longest - shortest)).astype(np.int32)
        ids = (3 + np.arange(lengths.sum()) % 890).astype(np.int32)
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        sides.append(Tokenised(ids, starts, lengths, np.zeros(420, bool)))
    mixture = Mixture(
        tasks=("large", "middle", "small"),
        rates=np.array([0.6, 0.3, 0.1]),
        counts=np.array([300, 100, 20]),
        lengths=np.stack([side.lengths for side in sides], axis=1),
    )
    settings = FinetuneSettings(inputs_length=48, targets_length=16, batch_size=4)
    return TaskInputs(settings, 0, mixture, *sides, joined=joined)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_batches_of_an_objective_are_the_known_ones(corpus: Corpus, name: str) -> None:
    for stream, known in ((True, STREAM), (False, PACKED)):
        sources = [corpus(name=name, stream=stream, joined=joined) for joined in (False, True)]
        assert digest(known_steps(*sources)) == known[name]


def test_the_batches_of_tasks_are_the_known_ones() -> None:
    assert digest(known_steps(tasks(), tasks(joined=True))) == TASKS


def late_batches(open_inputs: Callable[[], CorpusInputs | TaskInputs]) -> tuple[str, str]:
    """Return the digest of a late step, in a run that read others before and of that step alone."""
    run = open_inputs().batches(first_step=0, steps=LATE + 1)
    list(itertools.islice(run, 10))
    return digest([run.make(LATE)]), digest(open_inputs().batches(first_step=LATE, steps=1))


@pytest.mark.parametrize("stream", [True, False])
def test_ten_thousand_steps_later_a_batch_of_the_corpus_is_the_same(
    corpus: Corpus, stream: bool
) -> None:
    run, alone = late_batches(lambda: corpus(stream=stream))
    assert run == alone


def test_ten_thousand_steps_later_a_batch_of_tasks_is_the_same() -> None:
    run, alone = late_batches(tasks)
    assert run == alone


def test_counters_are_plain_numbers_for_a_manifest(corpus: Corpus) -> None:
    corpus_counters = corpus(name="random_spans").counters(steps=5)
    assert corpus_counters["padding_share"] < 0.4
    assert {type(value) for value in corpus_counters.values()} <= {int, float}
    task_counters = tasks().counters(first_step=0, steps=5)
    assert set(task_counters) == {
        "rates_asked",
        "rates_drawn",
        "drawn",
        "examples",
        "truncated_inputs",
        "truncated_targets",
        "padding_share",
    }
    assert {type(value) for value in task_counters["drawn"].values()} == {int}
