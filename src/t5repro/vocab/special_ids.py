"""Ids with a fixed meaning: padding, EOS, unknown and the sentinels (paper section 3.1.4).

T5's vocabularies begin with padding, EOS and unknown and end with the sentinels in descending
order, so that ``<extra_id_0>`` has the largest id. This module imports nothing of the package:
every stage that needs an id depends on it, and none on the training of the vocabulary.
"""

import struct
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", int, npt.NDArray[np.int32])

PAD_ID = 0  # also the id at which decoding starts
EOS_ID = 1
UNK_ID = 2
NO_ID = -1  # what SentencePiece reports for a special id that the vocabulary lacks, here BOS
FIRST_PIECE_ID = 3
USER_DEFINED = 4  # SentencePiece.Type in sentencepiece_model.proto


def sentinel(number: int) -> str:
    """Return the text of a sentinel, as it occurs in a sentence."""
    return f"<extra_id_{number}>"


def sentinel_id(number: Number, total_ids: int) -> Number:
    """Return the id of a sentinel: the last id for the first, in descending order.

    Args:
        number: of the sentinel, from 0; an int or an array of them.
        total_ids: pieces and sentinels of the vocabulary.
    """
    return total_ids - 1 - number


def sentinel_piece(number: int) -> str:
    """Return the piece of a sentinel: its text after SentencePiece's sign for a space."""
    return "\u2581" + sentinel(number)


def add_sentinels(proto: bytes, count: int) -> bytes:
    """Append the pieces ``▁<extra_id_{count-1}>`` to ``▁<extra_id_0>`` to a serialised model.

    Source: released code, ``SentencePieceVocabulary`` with ``extra_ids``; spec of SentencePiece's
    ``sentencepiece_model.proto`` (field 1 of the model; piece 1, score 2, type 3).
    """
    # Serialised protocol buffers merge by concatenation, so the model itself is not parsed. The
    # numbers descend because T5 addresses sentinel k as the last id minus k.
    return proto + b"".join(
        _length_delimited(
            1,
            _length_delimited(1, sentinel_piece(number).encode())
            + bytes([2 << 3 | 5])  # field 2, a 32-bit float
            + struct.pack("<f", 0.0)
            + bytes([3 << 3, USER_DEFINED]),  # field 3, a varint
        )
        for number in reversed(range(count))
    )


def _length_delimited(number: int, content: bytes) -> bytes:
    """Encode one field of a protocol buffer; pieces are short, so one byte holds the length."""
    return bytes([number << 3 | 2, len(content)]) + content
