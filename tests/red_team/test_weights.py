"""Weights and vocabularies from elsewhere: whatever they contain, a message names the file."""

import contextlib
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from t5repro.errors import ArtifactError, CheckpointError, T5ReproError, VocabularyError
from t5repro.model.checkpoints import read_arrays
from t5repro.model.foreign_weights import read_foreign
from t5repro.vocab.vocabulary import Vocabulary

pytestmark = pytest.mark.keras


def safetensors(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    """Return a safetensors file with any header, and any statement of its length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


HOSTILE = {
    "empty": b"",
    "header of 2**63 bytes": safetensors({}, length=1 << 63),
    "header longer than the file": safetensors({}, length=1 << 20),
    "header of 200 MB": safetensors(b"{" + b" " * 200_000_000 + b"}"),
    "header that is no JSON": safetensors(b"{"),
    "header that is a list": safetensors([]),
    "header of 100,000 brackets": safetensors(b"[" * 100_000),
    "array behind the end": safetensors({"a": entry("F32", [1 << 20], 0, 1 << 22)}, b"1234"),
    "overlapping arrays": safetensors(
        {"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, b"1234"
    ),
    "a hole between arrays": safetensors(
        {"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, bytes(12)
    ),
    "shape of 2**62 numbers": safetensors({"a": entry("F32", [1 << 31, 1 << 31], 0, 4)}, b"1234"),
    "shape whose product overflows": safetensors(
        {"a": entry("F32", [1 << 33, 1 << 33], 0, 0)}, b""
    ),
    "shape that is negative": safetensors({"a": entry("F32", [-1], 0, 4)}, b"1234"),
    "unknown type": safetensors({"a": entry("F77", [1], 0, 4)}, b"1234"),
    "type without numpy": safetensors({"a": entry("F8_E4M3", [4], 0, 4)}, b"1234"),
    "bytes behind the arrays": safetensors({"a": entry("F32", [1], 0, 4)}, b"12345678"),
    "a pickle": b"\x80\x04cos\nsystem\n(S'id'\ntR.",
}
NAMED = {"a pickle": r"weights\.safetensors is a pickle in place of safetensors"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_safetensors_file_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(HOSTILE[name])
    expected = NAMED.get(name, r"weights\.safetensors is not a safetensors file that")
    with pytest.raises(ArtifactError, match=expected):
        read_arrays(path)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), cut=st.booleans())
def test_any_damage_of_weights_is_a_message_or_a_number(
    tmp_path: Path, place: float, value: int, *, cut: bool
) -> None:
    data = bytearray(save({"a": np.arange(6, dtype=np.float32), "b": np.zeros((2, 2))}))
    index = int(place * len(data))
    if cut:
        del data[index:]
    else:
        data[index] = value
    path = tmp_path / "weights.safetensors"
    path.write_bytes(bytes(data))
    with contextlib.suppress(ArtifactError):  # any other error fails the test
        read_arrays(path)


CONFIG: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 8,
    "d_ff": 16,
    "d_kv": 4,
    "num_heads": 2,
    "num_layers": 1,
}


@pytest.mark.parametrize(
    "config",
    [
        [],
        5,
        None,
        {"model_type": "t5"},
        {**CONFIG, "d_model": "huge"},
        {**CONFIG, "d_model": -8},
        {**CONFIG, "num_heads": 0},
        {**CONFIG, "num_layers": 10**9},
        {**CONFIG, "num_layers": [1]},
        {**CONFIG, "layer_norm_epsilon": float("nan")},
        {**CONFIG, "layer_norm_epsilon": "x"},
        {**CONFIG, "tie_word_embeddings": "perhaps"},
        {**CONFIG, "feed_forward_proj": ["relu"]},
        {**CONFIG, "model_type": {}},
        {**CONFIG, "d_ff": 10**400},
    ],
    ids=lambda config: json.dumps(config)[:70],
)
def test_a_hostile_configuration_of_hugging_face_is_named(tmp_path: Path, config: Any) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes(save({"a": np.zeros(1, np.float32)}))
    with pytest.raises((ArtifactError, CheckpointError), match=r"config\.json"):
        read_foreign(tmp_path)


@pytest.mark.parametrize("text", ["[" * 200_000, "9" * 5000, '{"a": 1', b"\xff\xfe{"])
def test_a_configuration_that_is_no_json_is_named(tmp_path: Path, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "config.json").write_bytes(data)
    with pytest.raises(ArtifactError, match=r"config\.json"):
        read_foreign(tmp_path)


@pytest.mark.parametrize(
    "index",
    [
        {},
        [],
        {"weight_map": 5},
        {"weight_map": {"a": "../x"}},
        {"weight_map": {"a": "/etc/passwd"}},
    ],
)
def test_an_index_that_leaves_the_folder_or_has_no_map_is_refused(
    tmp_path: Path, index: Any
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"model\.safetensors\.index\.json"):
        read_foreign(tmp_path)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(HOSTILE["a pickle"])
    with pytest.raises(ArtifactError, match="a pickle, which can run code"):
        read_foreign(tmp_path)


# Vocabularies


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small SentencePiece model with T5's special ids."""
    import sentencepiece

    folder = tmp_path_factory.mktemp("vocabulary")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a small vocabulary of few words", "few words more"] * 50),
        model_prefix=str(folder / "v"),
        vocab_size=40,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
        minloglevel=3,
    )
    return (folder / "v.model").read_bytes()


@pytest.mark.parametrize("data", [b"", b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"{}" * 1000])
def test_a_file_that_is_no_vocabulary_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "sentencepiece.model"
    path.write_bytes(data)
    with pytest.raises((ArtifactError, VocabularyError), match=r"sentencepiece\.model"):
        Vocabulary.load(path)


FUZZ = """
import random, sys
from pathlib import Path
from t5repro.errors import T5ReproError
from t5repro.vocab.vocabulary import Vocabulary
path, data = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
draw = random.Random(0)
for _ in range(400):
    damaged = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
    if draw.random() < 0.3:
        del damaged[draw.randrange(len(damaged)):]
    path.write_bytes(bytes(damaged))
    try:
        Vocabulary.load(path)
    except T5ReproError as error:
        assert str(path) in str(error)
print("all read or refused")
"""


def test_a_damaged_vocabulary_ends_no_process(tmp_path: Path, vocabulary: bytes) -> None:
    path = tmp_path / "sentencepiece.model"
    path.write_bytes(vocabulary)
    process = subprocess.run(
        [sys.executable, "-c", FUZZ, str(path)],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stdout == "all read or refused\n", process.stderr[-2000:]


@pytest.mark.parametrize("ids", [(1, 0, 2, -1), (-1, 1, 0, 2)])
def test_a_vocabulary_with_other_special_ids_is_refused(
    tmp_path: Path, ids: tuple[int, ...]
) -> None:
    import sentencepiece

    pad, eos, unk, bos = ids
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a small vocabulary of few words"] * 50),
        model_prefix=str(tmp_path / "v"),
        vocab_size=40,
        pad_id=pad,
        eos_id=eos,
        unk_id=unk,
        bos_id=bos,
        hard_vocab_limit=False,
        minloglevel=3,
    )
    with pytest.raises(T5ReproError, match="T5 needs"):
        Vocabulary.load(tmp_path / "v.model")
