"""Vocabularies of other libraries, trained on a text and written as their checkpoints have them."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

BERT = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>"]


def write_bert(
    folder: Path, lines: Sequence[str], size: int, *, lower: bool, **options: Any
) -> Path:
    """Write `vocab.txt` and `tokenizer_config.json`; return the former."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=BERT, show_progress=False, limit_alphabet=400
    )
    tokenizer.train_from_iterator(lines, trainer)
    config = {"do_lower_case": lower, "tokenizer_class": "BertTokenizer", **options}
    return _write(folder, {"tokenizer_config.json": config}, "vocab.txt", by_id(tokenizer))


def write_roberta(
    folder: Path, lines: Sequence[str], size: int, *, special: Sequence[str] = (), **options: Any
) -> Path:
    """Write `vocab.json` and `merges.txt` of byte BPE; return the former."""
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(
        lines, vocab_size=size, show_progress=False, special_tokens=list(special or ROBERTA)
    )
    pieces = by_id(tokenizer) + ([] if special else ["<mask>"])
    name = "GPT2Tokenizer" if special else "RobertaTokenizer"
    return _write_pairs(folder, pieces, tokenizer, {"tokenizer_class": name, **options})


def write_gpt2(folder: Path, lines: Sequence[str], size: int, **options: Any) -> Path:
    """Write `vocab.json` and `merges.txt` of GPT-2; return the former."""
    return write_roberta(folder, lines, size, special=["<|endoftext|>"], **options)


def write_gpt(folder: Path, lines: Sequence[str], size: int) -> Path:
    """Write `vocab.json` and `merges.txt` of GPT's own pairs; return the former."""
    tokenizer = tokenizers.Tokenizer(
        models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>"],
        end_of_word_suffix="</w>",
        limit_alphabet=300,
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    config = {"tokenizer_class": "OpenAIGPTTokenizer", "unk_token": "<unk>"}
    return _write_pairs(folder, by_id(tokenizer), tokenizer, config)


def write_albert(folder: Path, lines: Sequence[str], size: int, **options: Any) -> Path:
    """Write `spiece.model` with ALBERT's special ids, lower-cased; return it."""
    model = {
        "pad_id": 0,
        "unk_id": 1,
        "bos_id": -1,
        "eos_id": -1,
        "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
        "normalization_rule_name": "nmt_nfkc_cf",
    }
    config = {"do_lower_case": True, "tokenizer_class": "AlbertTokenizer", **options}
    return _write_unigram(folder, lines, size, model, config)


def write_xlnet(
    folder: Path, lines: Sequence[str], size: int, *, marks: str = "", **options: Any
) -> Path:
    """Write `spiece.model` with the special symbols of XLNet's README, cased; return it.

    `marks` are its punctuation marks. After each, transformers adds a sign of a space when it
    converts such a model, which SentencePiece does not.
    """
    model = {
        "unk_id": 0,
        "bos_id": 1,
        "eos_id": 2,
        "control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
        "user_defined_symbols": ["<eop>", *marks],
    }
    config = {"do_lower_case": False, "tokenizer_class": "XLNetTokenizer", **options}
    return _write_unigram(folder, lines, size, model, config)


def _write_unigram(
    folder: Path, lines: Sequence[str], size: int, model: dict[str, Any], config: dict[str, Any]
) -> Path:
    proto = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=proto,
        vocab_size=size,
        hard_vocab_limit=False,
        num_threads=16,
        minloglevel=2,
        **model,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "spiece.model").write_bytes(proto.getvalue())
    return folder / "spiece.model"


def by_id(tokenizer: Any) -> list[str]:
    """Return the pieces of a tokenizer by id."""
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _write_pairs(folder: Path, pieces: Sequence[str], tokenizer: Any, config: Any) -> Path:
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    merges = json.loads(inner.to_str())["model"]["merges"]
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return folder / "vocab.json"


def _write(folder: Path, documents: dict[str, Any], name: str, pieces: Sequence[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for file, values in documents.items():
        (folder / file).write_text(json.dumps(values))
    (folder / name).write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    return folder / name


WRITERS: dict[str, Callable[[Path, Sequence[str], int], Path]] = {
    "bert uncased": lambda folder, lines, size: write_bert(folder, lines, size, lower=True),
    "bert cased": lambda folder, lines, size: write_bert(folder, lines, size, lower=False),
    "bert cased, accents stripped": lambda folder, lines, size: write_bert(
        folder, lines, size, lower=False, strip_accents=True
    ),
    "roberta": write_roberta,
    "roberta with a space first": lambda folder, lines, size: write_roberta(
        folder, lines, size, add_prefix_space=True
    ),
    "gpt2": write_gpt2,
    "gpt": write_gpt,
    "albert": write_albert,
    "albert with accents": lambda folder, lines, size: write_albert(
        folder, lines, size, keep_accents=True
    ),
    "xlnet": write_xlnet,
}
