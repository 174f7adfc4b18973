"""What `tokenizer_config.json` and its like say of an adopted vocabulary: used, known, or refused.

An option that is silently left out would encode text otherwise than the weights were trained on.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_json
from t5repro.vocab.adopted.forms import Form
from t5repro.vocab.id_order import ROLES

CONFIG, SPECIAL_TOKENS = "tokenizer_config.json", "special_tokens_map.json"
CONFIGURATIONS = (CONFIG, SPECIAL_TOKENS)
# Role -> names of it in a configuration; a token with several roles has the first that is free.
NAMES = {
    "pad": ("pad_token",),
    "unk": ("unk_token",),
    "[CLS]": ("cls_token",),
    "[SEP]": ("sep_token",),
    "[MASK]": ("mask_token",),
    "eos": ("eos_token",),
}
# Options that another class of tokenizers has -> the values with which ids are the same.
READABLE: Mapping[str, tuple[object, ...]] = {
    "do_basic_tokenize": (True, None),
    "never_split": (None, []),
    "remove_space": (True, None),
    "add_prefix_space": (True, None),  # of ALBERT: words begin with a space in any case
    "unk_id": (0, 1, None),  # of XLNet and of ALBERT; the model has it, too
    "split_special_tokens": (False, True, None),  # text never makes a special token here
    "add_bos_token": (False, None),
    "add_eos_token": (False, None),
    "errors": ("replace", None),
    "sp_model_kwargs": ({}, None),
    "legacy": (True, None),
    "max_input_chars_per_word": (100, None),
    "wordpieces_prefix": ("##", None),
    "clean_text": (True, None),
    "do_word_tokenize": (True, None),
}
# What concerns rows, which the settings of a run decide, and names of files and classes.
OF_ROWS = frozenset({
    "add_special_tokens", "added_tokens_decoder", "additional_special_tokens", "auto_map",
    "backend", "bos_token", "chat_template", "clean_up_tokenization_spaces", "device_map",
    "extra_special_tokens", "from_slow", "is_local", "local_files_only", "max_len", "max_length",
    "merges_file", "model_input_names", "model_max_length", "model_specific_special_tokens",
    "name_or_path", "pad_to_multiple_of", "pad_token_type_id", "padding", "padding_side",
    "processor_class", "special_tokens_map_file", "stride", "tokenizer_class", "tokenizer_file",
    "trim_offsets", "truncation", "truncation_side", "truncation_strategy", "use_fast",
    "vocab_file",
})  # fmt: skip
ANY_CLASS = ("PreTrainedTokenizer", "TokenizersBackend")
CURE = "ids would differ from those of the checkpoint: name another one, or correct the file"


def read_options(
    form: Form, files: Sequence[Path], file_options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a vocabulary.

    Args:
        form: its form.
        files: files next to it; those of `CONFIGURATIONS` are read.
        file_options: options that the definition in `tokenizer.json` has.

    Raises:
        ArtifactError: a file is not JSON.
        VocabularyError: an option, its value or the class is not readable.
    """
    options = {**form.options, **file_options}
    for path in files:
        if path.name != CONFIG:
            continue
        values = _mapping(path)
        _check_class(form, path, values.get("tokenizer_class"))
        for name, value in values.items():
            if name in form.options:
                if type(value) is not bool and value is not form.options[name]:
                    raise VocabularyError(
                        f"{path}: {name} is {value!r}; allowed are true and false"
                    )
                options[name] = value
            else:
                _check_option(form, path, name, value)
    return options


def _check_option(form: Form, path: Path, name: str, value: Any) -> None:
    roles = {name for names in NAMES.values() for name in names}
    if name in OF_ROWS or name in roles or value is None:
        return
    if name not in READABLE:
        raise VocabularyError(
            f"{path}: {name} is {value!r}, an option that the vocabulary of {form.title} does not "
            f"have here; allowed are {sorted([*form.options, *READABLE])}: {CURE}"
        )
    if value not in READABLE[name]:
        allowed = " or ".join(repr(value) for value in READABLE[name])
        raise VocabularyError(f"{path}: {name} is {value!r}; only {allowed} can be read: {CURE}")


def _check_class(form: Form, path: Path, name: Any) -> None:
    base = str(name).removesuffix("Fast")
    if name is not None and base not in (*form.classes, *ANY_CLASS):
        raise VocabularyError(
            f"{path}: tokenizer_class is {name!r}, but the files beside it are those of "
            f"{form.title}, whose class is {' or '.join(form.classes)}: {CURE}"
        )


def read_special_tokens(
    form: Form, files: Sequence[Path], vocabulary: Mapping[str, int], source: Path
) -> dict[str, str]:
    """Return role -> special token of a vocabulary.

    Args:
        form: its form.
        files: files next to it.
        vocabulary: piece -> id.
        source: file of the pieces, for messages.

    Raises:
        VocabularyError: a token that the form needs is not in the vocabulary, or two files name
            different ones.
    """
    token_of_role: dict[str, tuple[str, Path]] = {}
    for path in files:
        if path.name not in CONFIGURATIONS:
            continue
        for role, token in _named_tokens(_mapping(path)):
            earlier, where = token_of_role.setdefault(role, (token, path))
            if earlier != token:
                raise VocabularyError(
                    f"{path} has {NAMES[role][0]} {token!r}, {where} has {earlier!r}; they must "
                    f"agree: {CURE}"
                )
    tokens: dict[str, str] = {}
    for role, default in form.special_tokens.items():
        token, where = token_of_role.get(role, (default, Path()))
        if token not in vocabulary:
            if role in form.optional:
                continue
            origin = f", which {where} names" if role in token_of_role else ""
            raise VocabularyError(
                f"{source} has {len(vocabulary):,} pieces and lacks {token!r}{origin}; "
                f"{form.title} needs it as {NAMES[role][0]}: get the files again, or name another "
                "checkpoint"
            )
        if token in tokens.values():
            raise VocabularyError(
                f"{where} names {token!r} as {NAMES[role][0]}, which is another special token of "
                f"{form.title} already; each needs a row of its own: {CURE}"
            )
        tokens[role] = token
    return {role: tokens[role] for role in ROLES if role in tokens}


def _named_tokens(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for role, names in NAMES.items():
        for name in names:
            entry = values.get(name)
            token = entry.get("content") if isinstance(entry, Mapping) else entry
            if isinstance(token, str):
                yield role, token


def _mapping(path: Path) -> Mapping[str, Any]:
    values = read_json(path)
    if not isinstance(values, dict):
        raise ArtifactError(f"{path} has a {type(values).__name__}; it must be a mapping")
    return values
