"""Hugging Face's encoders and GPT, eager: python encoders_huggingface.py SYSTEM SIZE STEPS."""

import sys
from collections.abc import Callable
from typing import Any

import encoders_shapes as encoders
import torch
import training_shapes as shared
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    RobertaConfig,
    RobertaForMaskedLM,
    XLNetConfig,
    XLNetLMHeadModel,
)

CLASSES: dict[str, tuple[Any, Any]] = {
    "bert": (BertConfig, BertForPreTraining),
    "roberta": (RobertaConfig, RobertaForMaskedLM),
    "albert": (AlbertConfig, AlbertForPreTraining),
    "spanbert": (BertConfig, BertForMaskedLM),
    "structbert": (BertConfig, BertForPreTraining),
    "electra": (ElectraConfig, ElectraForPreTraining),
}
PAIR_LABELS = {"bert": "next_sentence_label", "albert": "sentence_order_label"}
IGNORED = -100  # label of a position that is not predicted
INDICES, INDEX_WIDTH = 15, 200  # of SpanBERT's head


class SpanBert(torch.nn.Module):
    """Hugging Face's BERT with SpanBERT's boundary objective, for which it has no class.

    Source: SpanBERT, section 3.2, and ``MLPWithLayerNorm`` of its code.
    """

    def __init__(self, bert: Any) -> None:
        super().__init__()
        width = bert.config.hidden_size
        self.bert = bert
        self.indices = torch.nn.Embedding(INDICES, INDEX_WIDTH)
        self.layers = torch.nn.Sequential(
            *(torch.nn.Linear(2 * width + INDEX_WIDTH, width), torch.nn.GELU()),
            *(torch.nn.LayerNorm(width), torch.nn.Linear(width, width)),
            *(torch.nn.GELU(), torch.nn.LayerNorm(width)),
        )
        self.bias = torch.nn.Parameter(torch.zeros(bert.config.vocab_size))

    def forward(
        self, borders: torch.Tensor, index: torch.Tensor, targets: torch.Tensor, **values: Any
    ) -> torch.Tensor:
        """Return the sum of both losses."""
        outputs = self.bert(**values, output_hidden_states=True)
        states, (rows, places, _) = outputs.hidden_states[-1], borders.shape
        pairs = states[torch.arange(rows)[:, None, None], borders].reshape(rows, places, -1)
        hidden = self.layers(torch.cat([pairs, self.indices(index)], dim=-1))
        logits = hidden @ self.bert.get_input_embeddings().weight.T + self.bias
        return outputs.loss + torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten()
        )


class StructBert(torch.nn.Module):
    """Hugging Face's BERT with three kinds of pairs, for which it has no class."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        bert.cls.seq_relationship = torch.nn.Linear(bert.config.hidden_size, 3)
        self.bert = bert

    def forward(self, labels: torch.Tensor, pairs: torch.Tensor, **values: Any) -> torch.Tensor:
        """Return the sum of both losses."""
        outputs = self.bert(**values)
        return torch.nn.functional.cross_entropy(
            outputs.prediction_logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED
        ) + torch.nn.functional.cross_entropy(outputs.seq_relationship_logits, pairs)


class Electra(torch.nn.Module):
    """Both networks of Hugging Face's ELECTRA with shared embeddings; it has no joint step.

    Source: ELECTRA ``PretrainingModel``.
    """

    def __init__(self, detector: Any, generator: Any) -> None:
        super().__init__()
        generator.electra.embeddings = detector.electra.embeddings
        generator.tie_weights()
        self.detector, self.generator = detector, generator

    def forward(
        self, labels: torch.Tensor, places: torch.Tensor, targets: torch.Tensor, **values: Any
    ) -> torch.Tensor:
        """Return the sum of the generator's loss and 50 times the detector's."""
        outputs = self.generator(**values, labels=labels)
        with torch.no_grad():
            logits = outputs.logits.gather(1, places[..., None].expand(-1, -1, encoders.IDS))
            noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-9, 1 - 1e-7)))
            drawn = (logits + noise).argmax(-1)
        ids = values["input_ids"].scatter(1, places, drawn)
        replaced = torch.zeros_like(ids).scatter(1, places, (drawn != targets).long())
        return (
            outputs.loss + 50 * self.detector(**{**values, "input_ids": ids}, labels=replaced).loss
        )


class XLNet(torch.nn.Module):
    """Hugging Face's XLNet with the memory of the step before."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network, self.memory = network, None

    def forward(self, **values: Any) -> torch.Tensor:
        """Return the loss, and keep the memory."""
        outputs = self.network(**values, mems=self.memory, use_mems=True)
        self.memory = tuple(states.detach() for states in outputs.mems)
        return outputs.loss


def network(system: str, size: str) -> Any:
    """Return the network in training mode."""
    shape = encoders.size_of(system, size)
    if system == "gpt":
        return _gpt(shape).train()
    if system == "xlnet":
        return _xlnet(shape).train()
    model = _encoder(system, shape, 1.0)
    if system == "electra":
        share = shape.generator_width
        model = Electra(model, _encoder(system, shape, share, ElectraForMaskedLM))
    elif system == "spanbert":
        model = SpanBert(model)
    elif system == "structbert":
        model = StructBert(model)
    return model.train()


def _gpt(shape: Any) -> Any:
    return OpenAIGPTLMHeadModel(
        OpenAIGPTConfig(
            vocab_size=encoders.IDS,
            n_positions=shape.max_positions,
            n_embd=shape.d_model,
            n_layer=shape.num_decoder_layers,
            n_head=shape.num_heads,
            embd_pdrop=encoders.DROPOUT,
            attn_pdrop=encoders.DROPOUT,
            resid_pdrop=encoders.DROPOUT,
        )
    )


def _xlnet(shape: Any) -> XLNet:
    rows = encoders.pretraining("xlnet").permutation_lm
    return XLNet(
        XLNetLMHeadModel(
            XLNetConfig(
                vocab_size=encoders.IDS,
                d_model=shape.d_model,
                n_layer=shape.num_encoder_layers,
                n_head=shape.num_heads,
                d_inner=shape.d_ff,
                ff_activation="gelu_new",
                dropout=encoders.DROPOUT,
                mem_len=rows.memory_length(encoders.LENGTH),
                reuse_len=rows.reuse_length(encoders.LENGTH),
                bi_data=rows.both_directions,
            )
        )
    )


def _encoder(system: str, shape: Any, share: float, network_class: Any = None) -> Any:
    """Return an encoder with a share of the widths."""
    config, own_class = CLASSES[system]
    more = {"embedding_size": shape.embedding_width} if shape.embedding_width else {}
    return (network_class or own_class)(
        config(
            vocab_size=encoders.IDS,
            hidden_size=round(share * shape.d_model),
            num_hidden_layers=shape.num_encoder_layers,
            num_attention_heads=round(share * shape.num_heads),
            intermediate_size=round(share * shape.d_ff),
            hidden_dropout_prob=encoders.DROPOUT,
            attention_probs_dropout_prob=encoders.DROPOUT,
            max_position_embeddings=514,
            **more,
        )
    )


def arguments(system: str) -> dict[str, torch.Tensor]:
    """Return the rows as arguments of the network, with a label at each position."""
    features, targets = encoders.batch(system)
    arrays = {name: torch.from_numpy(array).long() for name, array in features.items()}
    predicted = torch.from_numpy(targets).long()
    if system == "gpt":
        # The class predicts the next id of its inputs, so a row has one target less than ours.
        return {"input_ids": arrays["decoder_ids"], "labels": arrays["decoder_ids"]}
    places, values = arrays["target_positions"], {"input_ids": arrays["encoder_ids"]}
    if system == "xlnet":
        order = arrays["encoder_order"]
        return {
            **values,
            "token_type_ids": arrays["encoder_types"],
            "labels": predicted,
            "perm_mask": (order[:, None, :] >= order[:, :, None]).float(),
            "target_mapping": torch.nn.functional.one_hot(places, encoders.LENGTH).float(),
        }
    labels = torch.full_like(arrays["encoder_ids"], IGNORED).scatter(1, places, predicted)
    values |= {"attention_mask": arrays["encoder_segments"], "labels": labels}
    if system == "spanbert":
        borders, index = arrays["boundary_positions"], arrays["boundary_index"]
        return values | {"borders": borders, "index": index, "targets": predicted}
    if system == "roberta":
        return values
    values["token_type_ids"] = arrays["encoder_types"]
    if system == "electra":
        return values | {"places": places, "targets": predicted}
    return values | {PAIR_LABELS.get(system, "pairs"): arrays["pair_label"]}


def loss_of(system: str, size: str) -> tuple[Any, Callable[[], torch.Tensor]]:
    """Return the network, and the function that computes the loss of a batch."""
    model, values = network(system, size), arguments(system)

    def loss() -> torch.Tensor:
        outputs = model(**values)
        return outputs if isinstance(outputs, torch.Tensor) else outputs.loss

    return model, loss


def main(system: str, size: str, steps: int) -> None:
    """Train and print the time of a step."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model, loss = loss_of(system, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=encoders.RATE, weight_decay=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    shared.measure(step, steps, encoders.ROWS * encoders.LENGTH, encoders.operations(system, size))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
