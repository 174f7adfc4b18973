"""Names and prose of the package use the field's terms.

A binding (variable, argument, function, class) is a noun or a verb that says what it is, not a
participle, an adverb or a vague noun. A docstring uses a noun phrase, not a clause such as "what
is left". Single uses are fine; the limits keep both from becoming a dialect.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import t5repro

PACKAGE = Path(t5repro.__file__).parent
MODULES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}

MAX_VAGUE_NAMES = 10  # of 1,000 bindings
MAX_CLAUSES = 10  # of 10,000 words of docstrings
MAX_PHRASES = 3  # of 10,000 words of docstrings
MOST_SHOWN = 20

PARTICIPLES = """
    found known chosen wanted asked given named made left seen listed taken told met held stated
    shown answered drawn written brought begun gone allowed left_over put spoken waiting going
    parting said
"""
ADVERBS = """
    at worst here there apart until along beside behind now then also near far what both every
    whole usual other others rest
"""
VAGUE_NOUNS = """
    item place places thing things way face fate words mark plan kind_of missing_ones
    ours theirs mine yours
"""
VERBS_OF_NOTHING = "stays goes comes got waits"
VAGUE_NAMES = set(f"{PARTICIPLES} {ADVERBS} {VAGUE_NOUNS} {VERBS_OF_NOTHING}".split())

CLAUSE = re.compile(
    r"\bwhat (?:is|was|are|were|has|have|had|it|they|an?|the|each|every|can|cannot|must|may|will|"
    r"does|do|no|came|comes|goes|went|stays|makes|made|decides|runs|reads|follows|happens|becomes|"
    r"depends|proves|one|all|both|this|that|others?|another|jobs|rules|people|users)\b"
    r"|\bwhere (?:it|they|the|a) (?:lies|stands|goes|is kept)\b",
    re.IGNORECASE,
)

# Single uses read well; a text full of them does not read like the field's.
PHRASES = {
    "that_of": re.compile(r"\b(?:that|those) of\b", re.IGNORECASE),
    "whose": re.compile(r"\bwhose\b", re.IGNORECASE),
    "is_no": re.compile(r"\b(?:is|are|was|were) no (?!longer)\b", re.IGNORECASE),
    "alone": re.compile(r"\balone\b", re.IGNORECASE),
}


def bindings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            yield ast.get_docstring(node) or ""


def test_names_say_what_they_are() -> None:
    names = [(path, name) for path, tree in MODULES.items() for name in bindings(tree)]
    vague = Counter(
        f"{path.relative_to(PACKAGE)}: {name}"
        for path, name in names
        if name.strip("_") in VAGUE_NAMES
    )
    share = 1000 * vague.total() / len(names)
    assert share < MAX_VAGUE_NAMES, (
        f"{share:.1f} of 1,000 names are vague; most often {vague.most_common(MOST_SHOWN)}"
    )


def test_docstrings_use_noun_phrases() -> None:
    texts = [(path, text) for path, tree in MODULES.items() for text in docstrings(tree)]
    words = sum(len(text.split()) for _, text in texts)
    clauses = [
        f"{path.relative_to(PACKAGE)}: {clause}"
        for path, text in texts
        for clause in CLAUSE.findall(text)
    ]
    share = 10_000 * len(clauses) / words
    assert share < MAX_CLAUSES, (
        f"{share:.1f} clauses in 10,000 words; for example {clauses[:MOST_SHOWN]}"
    )


@pytest.mark.parametrize("phrase", PHRASES.values(), ids=PHRASES)
def test_docstrings_use_a_phrase_as_rarely_as_model_codebases(phrase: re.Pattern[str]) -> None:
    texts = [(path, text) for path, tree in MODULES.items() for text in docstrings(tree)]
    words = sum(len(text.split()) for _, text in texts)
    uses = [path.relative_to(PACKAGE) for path, text in texts for _ in phrase.findall(text)]
    share = 10_000 * len(uses) / words
    assert share <= MAX_PHRASES, f"{share:.1f} in 10,000 words, in {uses[:MOST_SHOWN]}"
