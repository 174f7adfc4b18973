"""Checkpoints with random weights and their vocabularies, as transformers saves them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from checkout import ROOT
from foreign_vocabularies import WRITERS

RELEASE = int(transformers.__version__.partition(".")[0])
SST2 = ROOT / "examples/mini/raw/tasks/glue/SST-2"
# Family -> its form in `WRITERS`, if that has another name.
FORMS = {"spanbert": "bert cased", "electra": "bert uncased"}
SHAPE = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


def bert(rows: int) -> Any:
    return transformers.BertConfig(
        vocab_size=rows, hidden_size=32, max_position_embeddings=64, **SHAPE
    )


NETWORKS: dict[str, Callable[..., Any]] = {
    "bert uncased": lambda rows: transformers.BertForPreTraining(bert(rows)),
    "roberta": lambda rows: transformers.RobertaForMaskedLM(
        transformers.RobertaConfig(
            vocab_size=rows, hidden_size=32, max_position_embeddings=66, type_vocab_size=1, **SHAPE
        )
    ),
    "albert": lambda rows: transformers.AlbertForPreTraining(
        transformers.AlbertConfig(
            vocab_size=rows, hidden_size=32, embedding_size=16, max_position_embeddings=64, **SHAPE
        )
    ),
    "spanbert": lambda rows: transformers.BertModel(bert(rows)),
    "electra": lambda rows: transformers.ElectraForPreTraining(
        transformers.ElectraConfig(
            vocab_size=rows, hidden_size=32, embedding_size=16, max_position_embeddings=64, **SHAPE
        )
    ),
    "xlnet": lambda rows: transformers.XLNetLMHeadModel(
        transformers.XLNetConfig(vocab_size=rows, d_model=32, n_layer=2, n_head=2, d_inner=48)
    ),
    "gpt": lambda rows: transformers.OpenAIGPTLMHeadModel(
        transformers.OpenAIGPTConfig(
            vocab_size=rows, n_positions=96, n_embd=32, n_layer=2, n_head=2
        )
    ),
}


def with_ids_of_release(source: Path, tokenizer: Any) -> Path:
    """Return the file of a vocabulary with the ids of the installed release of transformers.

    Release 5 cuts at spaces before it reads a unigram model, which only its own file says.
    """
    if source.suffix != ".model" or RELEASE == 4:
        return source
    tokenizer.save_pretrained(source.parent)
    source.unlink()
    return source.with_name("tokenizer.json")


def write_checkpoint(name: str, folder: Path) -> Path:
    """Write weights and vocabulary of a family of `NETWORKS`; return the file of the vocabulary."""
    lines = [row.split("\t")[0] for row in (SST2 / "train.tsv").read_text().splitlines()[1:]]
    source = WRITERS[FORMS.get(name, name)](folder, lines * 3, 400)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    rows = len(tokenizer)
    source = with_ids_of_release(source, tokenizer)
    torch.manual_seed(7)
    network = NETWORKS[name](rows)
    with torch.no_grad():
        for parameter_name, parameter in network.named_parameters():
            # Less in norms, so that answers vary.
            is_norm = "norm" in parameter_name.lower() or "ln_" in parameter_name
            parameter.add_((0.05 if is_norm else 0.2) * torch.randn_like(parameter))
    network.save_pretrained(folder, safe_serialization=True)
    return source
