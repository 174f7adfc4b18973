"""Settings of pre-training (`pretrain.*`) and of the stage `pretrain`."""

from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.field import Section
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.config.sections.vocab import VocabSettings


class PretrainSettings(TrainingSettings):
    """Unsupervised pre-training (paper sections 3.1.4 and 3.3)."""

    targets_length: int = Field(192, ge=4)
    """Tokens of a row of targets."""
    objective: Literal[
        "replace_spans", "drop_tokens", "mass_style", "bert_style", "deshuffling", "prefix_lm", "lm"
    ] = "replace_spans"
    """What becomes of corrupted tokens, or how a text is split: a row of the paper's tables 4 to 7
    (`docs/paper_rows.md`).
    """
    noise_mask: Literal["iid", "random_spans"] = "iid"
    """Which tokens are corrupted: each on its own (the baseline), or in spans."""
    noise_density: float = Field(0.15, gt=0, lt=1)
    """Share of corrupted tokens."""
    mean_noise_span_length: float = Field(3.0, ge=1)
    """Mean length of a corrupted span of `random_spans`; tokens."""
    final_sentinel: bool = False
    """Close targets that end in noise with one more sentinel, as figure 2 of the paper shows and
    the released code does not.
    """
    unique_tokens: int = Field(0, ge=0)
    """Train on the first so many tokens of the corpus alone, again and again; tokens; 0: all."""
    chunk_tokens: int = Field(65_536, ge=0)
    """Of a longer document one chunk of this many is used, drawn by the seed; tokens; 0: whole
    documents.
    """
    start_from: str = ""
    """Folder of raw files with a published checkpoint to begin with: Hugging Face, keras-hub, the
    T5 release's TensorFlow files or this project's; empty: fresh weights.
    """
    concatenate_documents: bool = True
    """True: documents run on into each other and are cut to full rows, as in the baseline; false:
    each document is cut on its own and rows are packed with segment masks.
    """

    @property
    def packed_inputs_length(self) -> int:
        """Tokens of inputs in a packed row; 0 for a language model, whose text is all targets."""
        return 0 if self.objective == "lm" else self.inputs_length

    @model_validator(mode="after")
    def _objective_is_possible(self) -> "PretrainSettings":
        whole = ("mass_style", "bert_style", "deshuffling", "prefix_lm")
        if self.objective in whole and self.targets_length < self.inputs_length:
            raise ValueError(
                f"objective {self.objective} can have targets as long as its inputs: "
                f"targets_length {self.targets_length} must be at least inputs_length "
                f"{self.inputs_length}"
            )
        if self.objective == "prefix_lm" and self.noise_density > 0.5:
            raise ValueError(
                f"noise_density of objective prefix_lm is {self.noise_density}; at most 0.5"
            )
        return self


class PretrainStage(Section):
    """Settings of `pretrain`."""

    seed: int
    vocab: VocabSettings
    model: ModelSettings
    pretrain: PretrainSettings
    devices: DevicesSettings
