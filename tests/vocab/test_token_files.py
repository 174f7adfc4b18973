from pathlib import Path

import numpy as np
import pytest

from t5repro.errors import ArtifactError
from t5repro.vocab.token_files import id_dtype, read_ids, read_offsets


def test_ids_take_two_bytes_as_long_as_they_can():
    assert id_dtype(65_536) == np.dtype("<u2")
    assert id_dtype(65_537) == np.dtype("<u4")


def test_damaged_files_are_named(tmp_path: Path):
    ids, offsets = tmp_path / "train.ids", tmp_path / "train.offsets"
    with pytest.raises(ArtifactError, match=r"train.ids is missing; run the rule tokens"):
        read_ids(ids, 100)
    ids.write_bytes(b"abc")
    with pytest.raises(ArtifactError, match=r"train.ids has 3 bytes, not a whole number of 2-byte"):
        read_ids(ids, 100)
    for values in ([], [1, 2], [0, 5, 5], [0, 5, 4]):
        np.array(values, "<i8").tofile(offsets)
        with pytest.raises(ArtifactError, match=r"train.offsets does not ascend from 0"):
            read_offsets(offsets)
