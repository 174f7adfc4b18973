"""Mode tokens of a mixture of denoisers (UL2), as ids of the vocabulary (D-047).

Without TensorFlow, as the report needs them. UL2 writes them as text; here they are the last three
sentinels, which spans use last: with 100 sentinels `[NLU]` is ``<extra_id_99>``, `[S2S]`
``<extra_id_98>`` and `[NLG]` ``<extra_id_97>``.
"""

MODE_TOKENS = ("NLU", "S2S", "NLG")


def mode_token_id(name: str, *, total_ids: int, extra_ids: int) -> int:
    """Return the id of a mode token.

    Args:
        name: of the mode token.
        total_ids: pieces and sentinels of the vocabulary.
        extra_ids: sentinels of the vocabulary, at least as many as mode tokens.
    """
    return total_ids - extra_ids + MODE_TOKENS.index(name)
