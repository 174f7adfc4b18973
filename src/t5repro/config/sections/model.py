"""Settings of the Transformer (`model.*`, paper sections 2.1 and 3.2)."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from t5repro.config.families import ARCHITECTURES, ENCODER_ONLY, Family
from t5repro.config.field import Section


def known_architecture(name: str) -> str:
    """Return the name of an architecture of the table."""
    if name not in ARCHITECTURES:
        *names, last = map(repr, ARCHITECTURES)
        expected = f"{', '.join(names)} or {last}"
        raise PydanticCustomError(
            "literal_error", "Input should be {expected}", {"expected": expected}
        )
    return name


Architecture = Annotated[
    str,
    AfterValidator(known_architecture),
    WithJsonSchema({"enum": list(ARCHITECTURES), "type": "string"}),
]


class ModelSettings(Section):
    """The Transformer (paper sections 2.1 and 3.2)."""

    published: str = ""
    """Name of the preset of `sizes` that `use` names, for the records of jobs. A run file does not
    set it.
    """
    architecture: Architecture = "encoder_decoder"
    """Architecture: encoder and decoder, encoder and decoder with shared weights, or a decoder
    only, which reads inputs and targets as one sequence: with a causal mask (`language_model`), or
    with full visibility of the inputs (`prefix_language_model`). `encoder` is BERT's: an encoder
    only, which predicts masked pieces in pre-training, and labels and numbers in tasks.
    `generator_detector` is ELECTRA's: a small encoder replaces masked pieces, and a second one,
    which fine-tuning continues, tells replaced pieces from others.
    `two_stream` is XLNet's: an encoder that predicts pieces in any order, with a memory.
    """
    target_marker: Literal["eos", "target_word"] = "eos"
    """Separator of inputs and targets in a decoder-only model: EOS as in the released code, or in
    tasks the word `target:` as in the paper's text.
    """
    d_model: int = Field(768, ge=1)
    """Width of the residual stream; features."""
    d_ff: int = Field(3072, ge=1)
    """Width inside the feed-forward layers; features."""
    d_kv: int = Field(64, ge=1)
    """Width of one attention head; features."""
    num_heads: int = Field(12, ge=1)
    """Attention heads."""
    num_encoder_layers: int = Field(12, ge=1)
    """Blocks of the encoder."""
    num_decoder_layers: int = Field(12, ge=1)
    """Blocks of the decoder."""
    feed_forward: Literal["relu", "gelu", "gelu_tanh", "gated_gelu", "swiglu"] = "relu"
    """Feed-forward layer: `relu` in T5 1.0, `gelu` in RoBERTa, `gelu_tanh` (GELU by its tanh
    approximation) in GPT, BERT and ALBERT, `gated_gelu` in T5 1.1, `swiglu` with SiLU as its gate.
    """
    biases: bool = False
    """Whether the products of attention and feed-forward layers have biases, as in GPT."""
    scale_attention: bool = False
    """Whether the logits of attention are divided by the root of `d_kv`. T5 has this factor in the
    initial values of the queries.
    """
    tie_embeddings: bool = True
    """Whether input embedding and output projection share one matrix (T5 1.0)."""
    scale_decoder_outputs: bool = True
    """Whether the output of the decoder is divided by the root of `d_model` before a projection
    that it shares with the embedding (T5 1.0).
    """
    initializer: Literal["t5", "normal", "truncated_normal"] = "t5"
    """Initial values of matrices and embeddings: normal with T5's deviations, which follow from
    the widths, or normal or truncated normal with the deviation `initializer_range`. Biases start
    at 0, the scales of norms at 1.
    """
    initializer_range: float = Field(0.02, gt=0)
    """Deviation of the initial values if `initializer` is not `t5`."""
    dropout_noise: Literal["per_row", "per_position"] = "per_row"
    """Dropout: one value for all positions of a row, as T5's released code, or one a position."""
    activation_dropout: bool = True
    """Whether features inside a feed-forward layer are dropped too, as in T5; GPT and BERT-style
    models drop only its output.
    """
    pooler_dropout: bool = False
    """Whether fine-tuning of an encoder only drops features before the pooler too, as RoBERTa; BERT
    drops only its result.
    """
    positions: Literal["relative", "rotary", "learned", "distances"] = "relative"
    """Positions: learned relative position biases in self-attention as in T5; rotary position
    embeddings, which have no parameters (Su et al., 2021); one learned vector a position, added
    to the embedding as in GPT; or keys of distances, projected from their sinusoids in each block,
    as in XLNet (`two_stream`). Positions of an example in a packed row start at 0.
    """
    max_positions: int = Field(512, ge=1)
    """Rows of the table of learned positions: the greatest length of a row."""
    token_types: int = Field(0, ge=0)
    """Rows of the table of token types, which an encoder only adds to the embedding: 2 in BERT, for
    the first and the second segment of a row. 0 means no table.
    """
    embedding_width: int = Field(0, ge=0)
    """Width of the embedding of an encoder only, which a matrix projects to `d_model` (ALBERT). 0
    means `d_model`, without a matrix.
    """
    block_groups: int = Field(0, ge=0)
    """Groups into which the blocks of an encoder only are divided; all blocks of a group have the
    same weights (ALBERT: 1). 0 means that each block has its own.
    """
    shared_parts: Literal["all", "attention", "feed_forward"] = "all"
    """Weights that the blocks of a group share: all, or those of attention or of the feed-forward
    layer, each with its norm (ALBERT's table 4); every block then has its own other ones.
    """
    blocks_per_group: int = Field(1, ge=1)
    """Blocks with weights of their own in a group, which repeats them in this order (ALBERT's inner
    groups).
    """
    pair_separators: Literal[1, 2] = 1
    """Separators between the two segments of a task's row: one as in BERT, two as in RoBERTa."""
    generator_width: float = Field(0.25, gt=0, le=1)
    """Width of the generator of ELECTRA as a share of `d_model`, and of its feed-forward layers as
    a share of `d_ff`. Its heads are as wide as those of the detector, or its only one is narrower.
    """
    generator_blocks: float = Field(1.0, gt=0, le=1)
    """Blocks of the generator as a share of `num_encoder_layers`."""
    generator_tying: Literal["none", "embeddings", "all"] = "embeddings"
    """Weights that generator and detector share: none, all below the blocks but the projections
    (ids, positions, token types and their norm), or all, with which `generator_width` and
    `generator_blocks` are 1.
    """
    relative_position_bias: Literal["per_stack", "per_layer"] = "per_stack"
    """Tables of the relative position bias: one for all blocks of a stack as in T5, or one per
    block as in umT5.
    """
    relative_position_buckets: int = Field(32, ge=2)
    """Buckets of the relative position bias."""
    relative_position_max_distance: int = Field(128, ge=2)
    """Distance from which all positions share one bucket; tokens."""
    norm: Literal["rms", "layer"] = "rms"
    """RMS norm as in T5, or layer norm, which also subtracts the mean and adds a bias."""
    norm_placement: Literal["pre", "post"] = "pre"
    """Norms before each sub-layer and at the end of a stack, or after each residual connection as
    in GPT.
    """
    norm_epsilon: float = Field(1e-6, gt=0)
    """Constant added to the mean square or the variance in norms."""

    @property
    def family(self) -> Family:
        """The family of the architecture."""
        return ARCHITECTURES[self.architecture]

    @property
    def heights(self) -> dict[str, int]:
        """The blocks of each stack."""
        blocks: dict[str, int] = {
            "encoder": self.num_encoder_layers,
            "decoder": self.num_decoder_layers,
        }
        return {stack: blocks[stack] for stack in self.family.stacks}

    @property
    def generator(self) -> "ModelSettings":
        """The shape of ELECTRA's generator, an encoder of its own.

        Source: ELECTRA ``get_generator_config``.
        """
        width = round(self.d_model * self.generator_width)
        heads = max(1, width // self.d_kv)
        blocks = round(self.num_encoder_layers * self.generator_blocks)
        embedding = self.embedding_width or self.d_model
        is_projected = self.generator_tying != "none" and embedding != width
        return self.model_copy(
            update={
                "architecture": "encoder",
                "d_model": width,
                "d_ff": round(self.d_ff * self.generator_width),
                "d_kv": width // heads,
                "num_heads": heads,
                "num_encoder_layers": max(1, blocks),
                "embedding_width": embedding if is_projected else 0,
            }
        )

    @property
    def gated(self) -> bool:
        """Whether the feed-forward layer has a third matrix, for its gate."""
        return self.feed_forward in ("gated_gelu", "swiglu")

    @property
    def unused(self) -> set[str]:
        """The settings of parts that this network does not have."""
        unused = set(self.family.no_use)
        if self.positions != "relative":
            unused |= {"relative_position_buckets", "relative_position_max_distance"}
        if self.positions != "learned":
            unused.add("max_positions")
        return unused

    @property
    def stated(self) -> dict[str, Any]:
        """The settings as lines of a run file, which refuses settings of unused parts."""
        return self.model_dump(mode="json", exclude=self.unused)

    @model_validator(mode="after")
    def _stacks_can_share(self) -> "ModelSettings":
        if self.architecture == "shared_encoder_decoder" and (
            self.num_encoder_layers != self.num_decoder_layers
        ):
            raise ValueError(
                f"stacks that share weights need as many blocks: num_encoder_layers is "
                f"{self.num_encoder_layers}, num_decoder_layers {self.num_decoder_layers}"
            )
        return self

    @model_validator(mode="after")
    def _heads_can_rotate(self) -> "ModelSettings":
        if self.positions == "rotary" and self.d_kv % 2:
            raise ValueError(
                f"model.positions rotary turns pairs of features and model.d_kv is {self.d_kv}; "
                "make model.d_kv even"
            )
        return self

    @model_validator(mode="after")
    def _parts_of_encoders_have_one(self) -> "ModelSettings":
        absent = ENCODER_ONLY & self.family.no_use
        for name in sorted(absent):
            default = type(self).model_fields[name].default
            if getattr(self, name) != default:
                raise ValueError(
                    f"model.{name} is {getattr(self, name)}, which model.architecture "
                    f"{self.architecture} does not have; set it to {default}, or "
                    "model.architecture to encoder"
                )
        if self.family.objective != "masked_lm":
            return self
        if (self.positions, self.norm, self.norm_placement) != ("learned", "layer", "post"):
            raise ValueError(
                f"model.architecture {self.architecture} has learned positions and layer norms "
                f"after residual connections; model.positions is {self.positions}, model.norm "
                f"{self.norm}, model.norm_placement {self.norm_placement}: set them to learned, "
                "layer and post, or use a size such as sizes/bert_tiny"
            )
        if not self.tie_embeddings:
            raise ValueError(
                f"model.tie_embeddings is false; model.architecture {self.architecture} needs true"
            )
        repeated_blocks = max(self.block_groups, 1) * self.blocks_per_group
        if self.num_encoder_layers % repeated_blocks:
            raise ValueError(
                f"model.num_encoder_layers {self.num_encoder_layers} is not a multiple of "
                f"model.block_groups times model.blocks_per_group, {repeated_blocks}"
            )
        if self.shared_parts != "all" and not self.block_groups:
            raise ValueError(
                f"model.shared_parts is {self.shared_parts} and model.block_groups 0, with which "
                "blocks share nothing; set model.block_groups to 1, or model.shared_parts to all"
            )
        return self

    @model_validator(mode="after")
    def _generator_is_possible(self) -> "ModelSettings":
        if not self.family.has_generator:
            return self
        sizes = (self.generator_width, self.generator_blocks)
        if self.generator_tying == "all" and sizes != (1, 1):
            raise ValueError(
                f"model.generator_tying is all, but model.generator_width is {sizes[0]} and "
                f"model.generator_blocks {sizes[1]}; one network for both has one size: set both "
                "to 1"
            )
        width, heads = self.generator.d_model, self.generator.num_heads
        if not width or width % heads:
            raise ValueError(
                f"model.generator_width {self.generator_width} makes a generator of width {width} "
                f"with {heads} heads of about model.d_kv {self.d_kv}; choose a share that makes "
                "the width a multiple of model.d_kv, or less than twice as much"
            )
        return self

    @model_validator(mode="after")
    def _distances_belong_to_two_streams(self) -> "ModelSettings":
        stated = (self.positions, self.norm, self.norm_placement, self.biases, self.tie_embeddings)
        if self.architecture == "two_stream" and stated != (
            *("distances", "layer", "post"),
            *(True, True),
        ):
            raise ValueError(
                f"model.architecture two_stream has keys of distances, layer norms after residual "
                f"connections, biases in feed-forward layers and a shared embedding; "
                f"model.positions is {self.positions}, model.norm {self.norm}, "
                f"model.norm_placement {self.norm_placement}, model.biases {self.biases}, "
                f"model.tie_embeddings {self.tie_embeddings}: set them to distances, layer, post, "
                "true and true, or use a size such as sizes/xlnet_tiny"
            )
        if self.positions == "distances" and self.architecture != "two_stream":
            raise ValueError(
                f"model.positions distances belongs to model.architecture two_stream, not "
                f"{self.architecture}; set it to relative, rotary or learned"
            )
        if self.positions == "distances" and self.d_model % 2:
            raise ValueError(
                f"model.positions distances has a sine and a cosine for each frequency, and "
                f"model.d_model is {self.d_model}; make it even"
            )
        return self

    @model_validator(mode="after")
    def _tables_are_used(self) -> "ModelSettings":
        if self.positions != "relative" and self.relative_position_bias != "per_stack":
            raise ValueError(
                f"model.relative_position_bias is {self.relative_position_bias}, and "
                f"model.positions {self.positions} has no position biases; set model.positions to "
                "relative, or leave out model.relative_position_bias"
            )
        return self


class AddedLayers(Section):
    """The part of `finetune` that determines the layers of the network."""

    method: Literal["all", "adapters", "gradual_unfreezing"] = "all"
    """Trainable weights: all, adapters added to each block and norms, or the top block of each
    stack and one more block in each episode.
    """
    adapter_width: int = Field(2048, ge=1)
    """Inner width of the adapters; features. The paper uses 32, 128, 512 and 2048."""

    answers: Literal["text", "labels"] = "text"
    """Answers of a decoder only: text, or labels, numbers and choices from a linear layer on the
    last position of a row, as GPT. An encoder only always predicts those, and spans of SQuAD; all
    other networks write text.
    """

    @property
    def width(self) -> int:
        """Inner width of the adapters; features. 0 means that the network has none."""
        return self.adapter_width if self.method == "adapters" else 0


def tuned_family(model: ModelSettings, layers: AddedLayers) -> Family:
    """Return the family that a network is fine-tuned and answers as."""
    family = model.family
    is_classifier = layers.answers == "labels" or not family.writes_text
    return family.classifier if is_classifier and family.classifier else family
