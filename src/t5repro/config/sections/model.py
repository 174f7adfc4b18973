"""Settings of the Transformer (`model.*`, paper sections 2.1 and 3.2)."""

from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.field import Section


class ModelSettings(Section):
    """The Transformer (paper sections 2.1 and 3.2)."""

    published: str = ""
    """Name of a published size, such as `small`, `11b`, `2x` or `v1_1_base`
    (`config/published_sizes.py`): it sets widths, heads, blocks, `feed_forward` and
    `tie_embeddings`; what is stated beside it goes on top.
    """
    architecture: Literal[
        "encoder_decoder", "shared_encoder_decoder", "language_model", "prefix_language_model"
    ] = "encoder_decoder"
    """Two stacks, two stacks with one set of weights, or a decoder alone that reads inputs and
    targets as one text: causal, or with inputs that see each other whole.
    """
    target_marker: Literal["eos", "target_word"] = "eos"
    """Tokens between inputs and targets of a decoder alone: EOS as in the released code, or in
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
    feed_forward: Literal["relu", "gated_gelu"] = "relu"
    """T5 1.0 uses `relu`, T5 1.1 `gated_gelu`."""
    tie_embeddings: bool = True
    """One matrix for input and output (T5 1.0)."""
    relative_position_buckets: int = Field(32, ge=2)
    """Buckets of the position bias."""
    relative_position_max_distance: int = Field(128, ge=2)
    """Distance from which all share one bucket; tokens."""
    norm_epsilon: float = Field(1e-6, gt=0)
    """Added to the mean square in RMS norm."""

    @property
    def decoder_only(self) -> bool:
        """Whether inputs and targets are one text for a single stack."""
        return self.architecture in ("language_model", "prefix_language_model")

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


class AddedLayers(Section):
    """The part of `finetune` that decides which layers the network has."""

    method: Literal["all", "adapters", "gradual_unfreezing"] = "all"
    """What trains: every weight, adapters added to each block and norms, or the top block of each
    stack first and one more in each episode.
    """
    adapter_width: int = Field(2048, ge=1)
    """Inner width of the adapters; the paper has 32, 128, 512, 2048; features."""

    @property
    def width(self) -> int:
        """Inner width of the adapters; 0: the network has none."""
        return self.adapter_width if self.method == "adapters" else 0
