"""The families of networks that `model.architecture` names, as far as settings need to know.

A family has the stacks of a network, the content of their rows, and whether it writes text. Its
parts that compute (network, rows, loss, answers) are in `systems/`, in tables by the name of the
family. To add one: a row of `ARCHITECTURES` here, and a folder and rows of the tables there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Family:
    """A family of networks.

    Attributes:
        name: key of the tables in `systems/`.
        stacks: the stacks of blocks.
        joined: inputs and targets are one row, which the decoder reads.
        predicts_inputs: targets are some positions of the inputs.
        writes_text: it answers tasks by text; else by labels, numbers, options or spans.
        has_span_head: it answers by spans of its text and by tags of its words as well.
        has_generator: pre-training has a second network, which replaces masked pieces.
        objective: the one objective of its pre-training; none means all others.
        needs_inputs: an objective has to have inputs.
        classifier: the family that it is fine-tuned as with `finetune.answers: labels`, or always
            if it writes no text.
        row_pieces: special pieces before, between and after the segments of a task's row.
        ends_with_summary: the first of these pieces is the last of a row instead, and rows of tasks
            are padded on the left.
        has_memory: a step of pre-training reads states of the step before it.
        no_use: settings of the model without meaning.
        title: in messages on answers.
    """

    name: str
    stacks: tuple[str, ...]
    joined: bool = False
    predicts_inputs: bool = False
    writes_text: bool = True
    has_span_head: bool = False
    has_generator: bool = False
    objective: str = ""
    needs_inputs: bool = False
    classifier: "Family | None" = None
    row_pieces: tuple[str, str, str] = ("[CLS]", "[SEP]", "[SEP]")
    ends_with_summary: bool = False
    has_memory: bool = False
    no_use: frozenset[str] = frozenset()
    title: str = ""

    def lengths(self, inputs: int, targets: int) -> dict[str, int]:
        """Return the positions that each stack reads of a row of inputs and targets."""
        if self.joined:
            return {"decoder": inputs + targets}
        return {stack: inputs if stack == "encoder" else targets for stack in self.stacks}

    def positions(self, inputs: int, targets: int) -> int:
        """Return the positions that the network reads of a row, in all stacks."""
        return sum(self.lengths(inputs, targets).values())

    def longest(self, inputs: int, targets: int) -> int:
        """Return the positions of the longest row that a stack reads."""
        return max(self.lengths(inputs, targets).values())

    def predicted(self, inputs: int, targets: int) -> int:
        """Return the positions of a row whose ids are predicted."""
        return inputs + targets if self.joined else targets


# Settings of a second network, which only pre-training has.
GENERATOR_ONLY = frozenset({"generator_width", "generator_blocks", "generator_tying"})
# Settings of parts that only an encoder has.
ENCODER_ONLY = frozenset(
    {
        "token_types",
        "embedding_width",
        "block_groups",
        "blocks_per_group",
        "shared_parts",
        "pair_separators",
        "pooler_dropout",
    }
)
WITHOUT_ENCODER = ENCODER_ONLY | GENERATOR_ONLY
WITHOUT_DECODER = frozenset({"num_decoder_layers", "target_marker", "scale_decoder_outputs"})

ENCODER_DECODER = Family(
    "encoder_decoder", stacks=("encoder", "decoder"), needs_inputs=True, no_use=WITHOUT_ENCODER
)
PREFIX_DECODER = Family(
    "decoder",
    stacks=("decoder",),
    joined=True,
    row_pieces=("_start_", "_delimiter_", "_classify_"),
    no_use=WITHOUT_ENCODER | {"num_encoder_layers"},
)
DECODER_CLASSIFIER = replace(
    PREFIX_DECODER,
    name="decoder_classifier",
    writes_text=False,
    title="a network with finetune.answers labels",
)
DECODER = replace(PREFIX_DECODER, classifier=DECODER_CLASSIFIER)
ENCODER = Family(
    "encoder",
    stacks=("encoder",),
    predicts_inputs=True,
    writes_text=False,
    has_span_head=True,
    objective="masked_lm",
    needs_inputs=True,
    no_use=WITHOUT_DECODER | GENERATOR_ONLY,
    title="an encoder-only network",
)
DETECTOR = replace(
    ENCODER,
    name="detector",
    no_use=WITHOUT_DECODER | {"pooler_dropout", "block_groups", "blocks_per_group", "shared_parts"},
    title="a detector",
)
GENERATOR_DETECTOR = replace(
    DETECTOR, name="generator_detector", has_generator=True, classifier=DETECTOR
)
TWO_STREAM = Family(
    "two_stream",
    stacks=("encoder",),
    predicts_inputs=True,
    writes_text=False,
    objective="permutation_lm",
    needs_inputs=True,
    ends_with_summary=True,
    has_memory=True,
    no_use=ENCODER.no_use | ENCODER_ONLY,
    title="a two-stream network",
)

ARCHITECTURES: Mapping[str, Family] = {
    "encoder_decoder": ENCODER_DECODER,
    "shared_encoder_decoder": ENCODER_DECODER,
    "language_model": DECODER,
    "prefix_language_model": PREFIX_DECODER,
    "encoder": ENCODER,
    "generator_detector": GENERATOR_DETECTOR,
    "two_stream": TWO_STREAM,
}
