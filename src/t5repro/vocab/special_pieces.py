"""Pieces of the systems before T5: separators, masks and the starts and ends of their rows.

They have the first unused rows of the embedding, so that all systems of a run have the same
vocabulary, the same ids and the same number of rows.
"""

from t5repro.config.sections.vocab import SPECIAL_PIECES


def special_id(piece: str, total_ids: int) -> int:
    """Return the id of one of `SPECIAL_PIECES`.

    Args:
        piece: its text.
        total_ids: pieces and sentinels of the vocabulary.
    """
    return total_ids + SPECIAL_PIECES.index(piece)
