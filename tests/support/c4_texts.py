"""Pieces of text that the rules of C4 treat differently, for generated pages."""

from hypothesis import strategies as st

LINE_PIECES = st.sampled_from(
    [
        "a b c d",
        "five words are in here",
        ".",
        "?",
        '"',
        "...",
        "[1]",
        "[edit]",
        "[",
        "]",
        "\n",
        "\u2028",
        " ",
        "\u00a0",
        "{",
        "JavaScript",
        "lorem ",
        "ipsum",
        "terms of",
        " use",
        "x" * 30,
        "cookie policy",
        "coo\u212aie policy",
        "Σ",
        "İ",
        "\t",
        "a\x1fb",
        "  ",
        "\r\n",
        "\u3000",
        "\u200a",
        "ß",
        "…",
        ".\x85",
    ]
)
