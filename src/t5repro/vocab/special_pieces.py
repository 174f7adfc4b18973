"""Pieces of the systems before T5: separators, masks and the starts and ends of their rows.

They have the first unused rows of the embedding, so that all systems of a run have the same
vocabulary, the same ids and the same number of rows.
"""

from t5repro.config.sections.vocab import SPECIAL_PIECES

OF_ROWS = SPECIAL_PIECES[:3]  # start, separator and mask


def special_id(piece: str, total_ids: int) -> int:
    """Return the id of one of `SPECIAL_PIECES`.

    Args:
        piece: its text.
        total_ids: pieces and sentinels of the vocabulary.
    """
    return total_ids + SPECIAL_PIECES.index(piece)


def with_special_pieces(proto: bytes) -> bytes:
    """Return a SentencePiece model with the special pieces of rows behind its own."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(proto)
    for piece in OF_ROWS:  # the first ids behind the vocabulary's, `special_id`
        # Of a kind that text never has.
        model.pieces.add(piece=piece, score=0.0, type=model.SentencePiece.CONTROL)
    return bytes(model.SerializeToString())


def without_special_pieces(proto: bytes) -> bytes | None:
    """Return what `with_special_pieces` was given; None for another model."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(proto)
    last = model.pieces[-len(OF_ROWS) :]
    if [(piece.piece, piece.type) for piece in last] != [
        (piece, model.SentencePiece.CONTROL) for piece in OF_ROWS
    ]:
        return None
    del model.pieces[-len(OF_ROWS) :]
    return bytes(model.SerializeToString())
