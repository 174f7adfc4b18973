"""The forms of adopted vocabularies: their special tokens, options, and what `tokenizers` runs.

Source: transformers 4.57, ``convert_slow_tokenizer``, which makes the fast classes, and 5.23 for
the files that it saves otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t5repro.vocab.piece_model import SPACE
from t5repro.vocab.sentencepiece_model import begins_word as begins_word_of_albert

Options = Mapping[str, Any]
Model = dict[str, Any]  # the section `model` of a definition
CONTINUATION = "##"
END_OF_WORD = "</w>"
SPACE_BYTE = "\u0120"  # the letter of a space in byte BPE
OF_ENCODER = ("[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Form:
    """A form of vocabularies.

    Attributes:
        name: key in `FORMS`, and in the file of an adopted vocabulary.
        title: the family, for messages.
        classes: names of its tokenizers in other libraries, without ``Fast``; the first is written.
        special_tokens: role -> its token, if a configuration does not say otherwise.
        optional: roles that a vocabulary may lack.
        options: its options in ``tokenizer_config.json`` -> their values if it does not say.
        steps: the sections of the definition around the model, from options.
        options_of: the options of a definition.
        begins_word: whether a piece begins a word; None if pieces do not tell.
        spelling: a piece with `SPACE` for the spaces that it includes.
        files: names of the files of its pieces, as it is written.
        mask_includes_space: whether the mask includes the space before it, as a word does.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    special_tokens: Mapping[str, str]
    optional: frozenset[str]
    options: Options
    steps: Callable[[Options], dict[str, Any]]
    options_of: Callable[[Mapping[str, Any]], dict[str, Any]]
    begins_word: Callable[[str], bool] | None
    spelling: Callable[[str], str]
    files: tuple[str, ...]
    mask_includes_space: bool = False

    def definition(self, model: Model, options: Options) -> dict[str, Any]:
        """Return what `tokenizers` reads: truncation, padding and special tokens are ours."""
        empty: dict[str, Any] = {
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "post_processor": None,
        }
        return {
            "version": "1.0",
            **empty,
            "normalizer": None,
            **self.steps(options),
            "model": model,
        }


def word_piece(vocabulary: Mapping[str, int], unknown: str) -> Model:
    """Return the model of WordPiece."""
    return {
        "type": "WordPiece",
        "unk_token": unknown,
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": 100,
        "vocab": dict(vocabulary),
    }


def byte_pairs(
    vocabulary: Mapping[str, int], merges: Sequence[Sequence[str]], *, unknown: str | None, end: str
) -> Model:
    """Return the model of byte-pair encoding.

    Args:
        vocabulary: piece -> id.
        merges: pairs of pieces, the first one first.
        unknown: token of text that is in no piece; None if bytes spell everything.
        end: what ends the last piece of a word.
    """
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": end or None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": dict(vocabulary),
        "merges": [list(pair) for pair in merges],
    }


def unigram(scores: Sequence[tuple[str, float]], unknown_id: int) -> Model:
    """Return the model of SentencePiece's unigram vocabularies."""
    return {
        "type": "Unigram",
        "unk_id": unknown_id,
        "vocab": [list(entry) for entry in scores],
        "byte_fallback": False,
    }


def _bert_normalizer(lower: bool, accents: bool | None = None, chinese: bool = True) -> Model:
    return {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": chinese,
        "strip_accents": accents,
        "lowercase": lower,
    }


def _bert_steps(options: Options) -> dict[str, Any]:
    return {
        "normalizer": _bert_normalizer(
            options["do_lower_case"], options["strip_accents"], options["tokenize_chinese_chars"]
        ),
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": True},
    }


def _byte_steps(options: Options) -> dict[str, Any]:
    level = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "pre_tokenizer": {**level, "add_prefix_space": options["add_prefix_space"]},
        "decoder": {**level, "add_prefix_space": True},
    }


def _gpt_steps(_: Options) -> dict[str, Any]:
    return {
        "normalizer": _bert_normalizer(lower=True),
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "BPEDecoder", "suffix": END_OF_WORD},
    }


def _unigram_steps(options: Options) -> dict[str, Any]:
    def replaced(pattern: dict[str, str], content: str) -> Model:
        return {"type": "Replace", "pattern": pattern, "content": content}

    steps = [replaced({"String": quotes}, '"') for quotes in ("``", "''")]
    if not options["keep_accents"]:
        steps += [{"type": "NFKD"}, {"type": "StripAccents"}]
    if options["do_lower_case"]:
        steps.append({"type": "Lowercase"})
    if charsmap := options.get(CHARSMAP):
        steps.append({"type": "Precompiled", CHARSMAP: charsmap})
    spaces = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    cut = spaces
    if options.get(SPLIT):
        cut = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, spaces]}
    else:
        steps.append(replaced({"Regex": " {2,}"}, " "))
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": cut,
        "decoder": spaces,
    }


# Options without a name in tokenizer_config.json.
CHARSMAP = "precompiled_charsmap"  # SentencePiece's normalisation
SPLIT = "whitespace_split"  # transformers 5 cuts at spaces first, so one at the end makes no piece
_BERT_OPTIONS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


def _bert_options(definition: Mapping[str, Any]) -> dict[str, Any]:
    normalizer = definition["normalizer"] or {}
    return {
        option: normalizer[name] for option, name in _BERT_OPTIONS.items() if name in normalizer
    }


def _byte_options(definition: Mapping[str, Any]) -> dict[str, Any]:
    step, name = definition["pre_tokenizer"] or {}, "add_prefix_space"
    return {name: step[name]} if name in step else {}


def _unigram_options(definition: Mapping[str, Any]) -> dict[str, Any]:
    normalizer = definition["normalizer"] or {}
    steps = {step["type"] for step in normalizer.get("normalizers", [])}
    return {"do_lower_case": "Lowercase" in steps, "keep_accents": "StripAccents" not in steps}


def unnamed_options_of(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a unigram definition that no configuration names."""
    normalizer, cut = definition["normalizer"] or {}, definition["pre_tokenizer"] or {}
    steps = normalizer.get("normalizers", [])
    options: dict[str, Any] = {SPLIT: "pretokenizers" in cut}
    for charsmap in (step[CHARSMAP] for step in steps if CHARSMAP in step):
        options[CHARSMAP] = charsmap
    return options


def _bert_spelling(piece: str) -> str:
    # A piece that continues a word has no space before it.
    return piece.removeprefix(CONTINUATION) if piece.startswith(CONTINUATION) else SPACE + piece


def _byte_spelling(piece: str) -> str:
    from tokenizers.decoders import ByteLevel

    text = ByteLevel().decode([piece])
    # Some pieces are a part of the bytes of a character.
    return piece.replace(SPACE_BYTE, SPACE) if "\ufffd" in text else text.replace(" ", SPACE)


def _gpt_spelling(piece: str) -> str:
    word = piece.removesuffix(END_OF_WORD)
    return word + SPACE if word != piece else piece


_BERT_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", **{token: token for token in OF_ENCODER}}
_ROBERTA = Form(
    name="roberta",
    title="RoBERTa",
    classes=("RobertaTokenizer",),
    special_tokens={
        "pad": "<pad>",
        "unk": "<unk>",
        **dict(zip(OF_ENCODER, ("<s>", "</s>", "<mask>"), strict=True)),
    },
    mask_includes_space=True,
    optional=frozenset(),
    options={"add_prefix_space": False},
    steps=_byte_steps,
    options_of=_byte_options,
    begins_word=lambda piece: piece.startswith(SPACE_BYTE),
    spelling=_byte_spelling,
    files=("vocab.json", "merges.txt"),
)
_ALBERT = Form(
    name="albert",
    title="ALBERT",
    classes=("AlbertTokenizer",),
    special_tokens={**_BERT_TOKENS, "pad": "<pad>", "unk": "<unk>"},
    optional=frozenset(),
    options={"do_lower_case": True, "keep_accents": False},
    steps=_unigram_steps,
    options_of=_unigram_options,
    begins_word=begins_word_of_albert,
    spelling=lambda piece: piece,
    files=(),
    mask_includes_space=True,
)
_FORMS = (
    Form(
        name="bert",
        title="BERT",
        classes=("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
        special_tokens=_BERT_TOKENS,
        optional=frozenset(),
        options={"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True},
        steps=_bert_steps,
        options_of=_bert_options,
        begins_word=lambda piece: not piece.startswith(CONTINUATION),
        spelling=_bert_spelling,
        files=("vocab.txt",),
    ),
    _ROBERTA,
    replace(
        _ROBERTA,
        name="gpt2",
        title="GPT-2",
        classes=("GPT2Tokenizer",),
        special_tokens={"eos": "<|endoftext|>", "pad": "<pad>"},
        optional=frozenset({"pad"}),
        mask_includes_space=False,
    ),
    Form(
        name="gpt",
        title="GPT",
        classes=("OpenAIGPTTokenizer",),
        special_tokens={"unk": "<unk>", "pad": "<pad>", "eos": "</s>"},
        optional=frozenset({"pad", "eos"}),
        options={},
        steps=_gpt_steps,
        options_of=lambda _: {},
        begins_word=None,
        spelling=_gpt_spelling,
        files=("vocab.json", "merges.txt"),
    ),
    _ALBERT,
    replace(
        _ALBERT,
        name="xlnet",
        title="XLNet",
        classes=("XLNetTokenizer",),
        special_tokens={
            "pad": "<pad>",
            "unk": "<unk>",
            "eos": "</s>",
            **dict(zip(OF_ENCODER, ("<cls>", "<sep>", "<mask>"), strict=True)),
            "<eod>": "<eod>",
            "<eop>": "<eop>",
        },
        optional=frozenset({"eos", "<eod>", "<eop>"}),
        options={"do_lower_case": False, "keep_accents": False},
    ),
)
FORMS: Mapping[str, Form] = {form.name: form for form in _FORMS}
