"""Settings of pre-training (`pretrain.*`) and of the stage `pretrain`."""

from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.field import ExperimentOrNone, Section
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.config.sections.vocab import VocabSettings

TRIGRAM = 3  # parts of text that are shuffled together
OF_SENTENCES = ("masked_lm", "permutation_lm")
WITH_SENTINELS = ("replace_spans", "mass_style", "bert_style", "mixture_of_denoisers")


class Denoiser(Section):
    """One denoiser of the objective `mixture_of_denoisers` (UL2)."""

    objective: Literal["replace_spans", "prefix_lm"] = "replace_spans"
    """Objective: spans replaced by sentinels (UL2's R and X), or a prefix language model (S)."""
    noise_density: float = Field(0.15, gt=0, lt=1)
    """Fraction of corrupted tokens; of a prefix language model on average, at most 0.5."""
    mean_noise_span_length: float = Field(3.0, ge=1)
    """Mean length of a corrupted span of `replace_spans`; tokens."""
    mode_token: Literal["", "NLU", "S2S", "NLG"] = ""
    """Mode token at the start of the inputs: one of the last three sentinels (D-047). If empty,
    there is none.
    """
    weight: float = Field(1.0, gt=0)
    """Weight in the mixture: the probability is its share in the sum of all weights."""

    @model_validator(mode="after")
    def _prefix_is_possible(self) -> "Denoiser":
        _check_prefix_density(self.objective, self.noise_density)
        return self


class MaskedLM(Section):
    """Rows and masks of the objective `masked_lm` (BERT-style models)."""

    rows: Literal[
        "segment_pair", "sentence_pair", "full_sentences", "doc_sentences", "electra_segments"
    ] = "segment_pair"
    """Rows: two segments of whole sentences (BERT), two sentences (`sentence_pair`), whole
    sentences across documents (`full_sentences`), or of one document (`doc_sentences`), as in
    RoBERTa; or sentences of one document that fill a row, divided into one or two segments as in
    ELECTRA (`electra_segments`).
    """
    pair_task: Literal["none", "next_sentence", "sentence_order", "sentence_structure"] = (
        "next_sentence"
    )
    """Task on the two segments: whether the second one follows the first (BERT), whether they are
    swapped (ALBERT), or which of these it is: the second follows, precedes, or is of another
    document (StructBERT).
    """
    short_row_share: float = Field(0.1, ge=0, le=1)
    """Share of the documents with rows of `segment_pair` of a random length below the maximum,
    the same for all rows of a document, as in BERT's code; of `electra_segments` the share of such
    rows, as in ELECTRA's code (0.05).
    """
    unit: Literal["piece", "word", "ngram", "span"] = "piece"
    """Unit of the mask: pieces (BERT, RoBERTa), whole words, n-grams of 1 to 3 whole words (ALBERT)
    or spans of whole words of geometric length (SpanBERT).
    """
    mask_special_pieces: bool = False
    """Whether `[CLS]` and `[SEP]` can be masked, as in RoBERTa's code."""
    mask_share: float = Field(0.8, ge=0, le=1)
    """Share of the selected pieces that `[MASK]` replaces."""
    random_share: float = Field(0.1, ge=0, le=1)
    """Share of the selected pieces that a random piece replaces; the others stay."""
    boundary_weight: float = Field(0.0, ge=0)
    """Weight of SpanBERT's boundary objective, which predicts each piece of a masked span from the
    two states next to the span. 0 means none.
    """
    shuffle_share: float = Field(0.0, ge=0, lt=1)
    """Share of `shuffle_of` in trigrams whose order is shuffled and whose pieces are predicted next
    to the masked ones: StructBERT's word structure. 0 means none.
    """
    shuffle_of: Literal["tokens", "trigrams"] = "tokens"
    """What `shuffle_share` is a share of: the tokens of a row, or the trigrams into which its text
    between masked pieces is divided, of which at least one is shuffled.
    """
    shuffle_unit: Literal["piece", "word"] = "piece"
    """Parts of a shuffled trigram: three pieces, or three whole words."""
    shuffle_identity: bool = True
    """Whether the order drawn for a trigram may be the original one, one of six."""
    copies: int = Field(0, ge=0)
    """Versions of each row with other masks, one after another in the epochs: 10 in BERT's static
    data. 0 means another mask in every epoch.
    """

    @property
    def has_pairs(self) -> bool:
        """Whether a row can have two segments."""
        return self.rows in ("segment_pair", "sentence_pair", "electra_segments")

    @property
    def pair_classes(self) -> int:
        """Classes of a pair of segments; 0 without a task on pairs."""
        return {"none": 0, "sentence_structure": 3}.get(self.pair_task, 2)

    def shuffled(self, tokens: int) -> int:
        """Return how many tokens of a row are shuffled at most, of a row of `tokens` tokens."""
        trigrams = round(self.shuffle_share * tokens / TRIGRAM)
        at_least = int(self.shuffle_of == "trigrams" and self.shuffle_share > 0)
        return TRIGRAM * max(trigrams, at_least)

    @model_validator(mode="after")
    def _fits_together(self) -> "MaskedLM":
        if self.mask_share + self.random_share > 1:
            raise ValueError(
                f"mask_share {self.mask_share} and random_share {self.random_share} add up to more "
                "than 1"
            )
        if self.pair_task != "none" and self.rows not in ("segment_pair", "sentence_pair"):
            raise ValueError(
                f"pair_task {self.pair_task} needs two segments, which rows {self.rows} lack; "
                "set rows to segment_pair or sentence_pair, or pair_task to none"
            )
        if self.shuffle_share and self.boundary_weight:
            raise ValueError(
                f"shuffle_share {self.shuffle_share} and boundary_weight {self.boundary_weight} "
                "exclude each other: shuffled pieces are in no span; set one of them to 0"
            )
        return self


class ReplacedTokens(Section):
    """The second network of the architecture `generator_detector`, which reads replaced pieces."""

    task: Literal["detection", "masked_detection", "masked_pieces", "all_pieces"] = "detection"
    """Task on rows with the pieces that the generator drew at masked positions: whether each piece
    is replaced (ELECTRA), only at masked positions (`masked_detection`, "ELECTRA 15%"), or the
    original piece of masked positions (`masked_pieces`, "Replace MLM") or of all, with a
    probability of copying (`all_pieces`, "All-Tokens MLM").
    """
    weight: float = Field(50.0, ge=0)
    """Weight of the mean loss of this task, next to that of the generator."""


class PermutationLM(Section):
    """Rows, memory and order of the objective `permutation_lm` (XLNet)."""

    reuse_share: float = Field(0.5, gt=0, lt=1)
    """Share of a row that continues the text of its row slot, and that the memory takes up; two
    segments fill the rest.
    """
    memory_share: float = Field(0.75, ge=0)
    """Length of the memory as a share of `pretrain.inputs_length`. 0 means no memory."""
    both_directions: bool = True
    """Whether every second row reads the text backwards."""
    order_blocks: int = Field(1, ge=1)
    """Blocks of each of the two parts of a row, which all have the same order of positions."""
    longest_span: int = Field(5, ge=1)
    """Pieces of the longest span to predict; the probability of n pieces is in proportion to 1/n.
    """
    span_context: int = Field(6, ge=2)
    """Pieces of context of each piece of a span, in which the place of the span is uniform."""

    def reuse_length(self, inputs_length: int) -> int:
        """Return the tokens of a row that continue the text of its slot."""
        return round(self.reuse_share * inputs_length)

    def memory_length(self, inputs_length: int) -> int:
        """Return the positions of the memory of a row."""
        return round(self.memory_share * inputs_length)

    def check(self, inputs_length: int, targets_length: int, batch_size: int) -> None:
        """Raise ValueError if a batch has no rows of these settings."""
        first = self.reuse_length(inputs_length)
        parts = (first, inputs_length - first)
        goals = (targets_length - targets_length // 2, targets_length // 2)
        # Two segments of at least one token, two `[SEP]` and `[CLS]`.
        if parts[0] < 1 or parts[1] < 5 or any(map(int.__gt__, goals, parts)):
            raise ValueError(
                f"permutation_lm.reuse_share {self.reuse_share} divides inputs_length "
                f"{inputs_length} into {parts[0]} and {parts[1]} tokens, which have to hold two "
                f"segments with their separators and {goals[0]} and {goals[1]} targets; change "
                "one of the three"
            )
        if any(part % self.order_blocks for part in parts):
            raise ValueError(
                f"permutation_lm.order_blocks {self.order_blocks} does not divide the parts of a "
                f"row, {parts[0]} and {parts[1]} tokens; set it to 1"
            )
        if self.both_directions and batch_size % 2:
            raise ValueError(
                f"batch_size {batch_size} is odd, and permutation_lm.both_directions reads every "
                "second row backwards; make it even"
            )


class PretrainSettings(TrainingSettings):
    """Unsupervised pre-training (paper sections 3.1.4 and 3.3)."""

    targets_length: int = Field(192, ge=4)
    """Length of the targets of a row; tokens."""
    flops: float = Field(0, ge=0)
    """Floating-point operations of the whole training, for experiments at equal compute: `steps` is
    set to as many as take most nearly this number, with those of `from_experiment`. 0 means that
    `steps` are as stated.
    """
    objective: Literal[
        "replace_spans",
        "drop_tokens",
        "mass_style",
        "bert_style",
        "deshuffling",
        "prefix_lm",
        "lm",
        "mixture_of_denoisers",
        "masked_lm",
        "permutation_lm",
    ] = "replace_spans"
    """Objective: a row of the paper's tables 4 to 7 (`docs/paper_rows.md`), UL2's mixture of
    `denoisers` (`docs/recent_recipes.md`), the masked language model of an encoder only, or XLNet's
    predictions in any order (`docs/systems.md`). Determines how corrupted tokens are replaced, or
    how a text is split into inputs and targets.
    """
    masked_lm: MaskedLM = MaskedLM()
    """Rows and masks of `masked_lm`. Its `targets_length` is the largest number of masked pieces in
    a row, and `noise_density` their share.
    """
    replaced_tokens: ReplacedTokens = ReplacedTokens()
    """Task and loss of ELECTRA's second network."""
    permutation_lm: PermutationLM = PermutationLM()
    """Rows, memory and order of `permutation_lm`. Its `targets_length` is the number of positions
    that are selected in a row.
    """
    denoisers: tuple[Denoiser, ...] = ()
    """Denoisers of `mixture_of_denoisers`: one is drawn for each segment of a row, and its mask and
    density are used in place of `noise_mask`, `noise_density` and `mean_noise_span_length`.
    """
    noise_mask: Literal["iid", "random_spans"] = "iid"
    """Selection of corrupted tokens: independently (the baseline), or in spans."""
    noise_density: float = Field(0.15, gt=0, lt=1)
    """Fraction of corrupted tokens."""
    mean_noise_span_length: float = Field(3.0, ge=1)
    """Mean length of a corrupted span of `random_spans`; tokens."""
    final_sentinel: bool = False
    """Whether targets that end in a corrupted span end with another sentinel, as in figure 2 of the
    paper, but not in the released code.
    """
    unique_tokens: int = Field(0, ge=0)
    """Train only on the start of the corpus, repeatedly; tokens. 0 means the whole corpus."""
    chunk_tokens: int = Field(65_536, ge=0)
    """Maximum length of a document; tokens. Of a longer document, one randomly drawn chunk of this
    length is used. 0 means no maximum.
    """
    validation_every_steps: int = Field(0, ge=0)
    """Interval of the loss on the validation split of the corpus; steps, a multiple of
    `log_every_steps`. 0 means never.
    """
    validation_batches: int = Field(16, ge=1)
    """Batches of this loss: the same rows, corrupted in the same way, at every measurement and for
    every repetition. A split that fills fewer is read once.
    """
    start_from: str = ""
    """Folder of raw files with the initial weights: a checkpoint of Hugging Face, keras-hub, the T5
    release (TensorFlow) or this project. If empty, fresh weights are used.
    """
    from_experiment: ExperimentOrNone = ""
    """Earlier experiment of the run whose pre-training this one continues as a further phase, such
    as BERT's steps with rows of 512 after those with 128 (D-049). Both have the same vocabulary and
    network. If empty, the initial weights are those of `start_from`, or fresh.
    """
    concatenate_documents: bool = True
    """Whether documents are concatenated and split into full rows, as in the baseline. If false,
    each document is split on its own and rows are packed with segment masks.
    """

    @property
    def packed_inputs_length(self) -> int:
        """Tokens of inputs in a packed row; 0 for a language model, which has only targets."""
        return 0 if self.objective == "lm" else self.inputs_length

    @property
    def row_kinds(self) -> int:
        """Kinds of rows, which take turns in a batch: those read forwards and backwards."""
        alternates = self.objective == "permutation_lm" and self.permutation_lm.both_directions
        return 1 + alternates

    @property
    def reads_corpus(self) -> bool:
        """Whether the stage reads the corpus: not if it writes given weights unchanged."""
        return self.steps > 0 or not self.start_from

    @property
    def reads_sentences(self) -> bool:
        """Whether the rows consist of sentences, which the rule `sentences` finds."""
        return self.objective in OF_SENTENCES and self.reads_corpus

    @model_validator(mode="after")
    def _objective_is_possible(self) -> "PretrainSettings":
        full_target_objectives = ("mass_style", "bert_style", "deshuffling", "prefix_lm")
        if self.objective in full_target_objectives and self.targets_length < self.inputs_length:
            raise ValueError(
                f"objective {self.objective} can have targets as long as its inputs: "
                f"targets_length {self.targets_length} must be at least inputs_length "
                f"{self.inputs_length}"
            )
        _check_prefix_density(self.objective, self.noise_density)
        self._check_shuffled()
        if self.objective == "permutation_lm":
            self.permutation_lm.check(self.inputs_length, self.targets_length, self.batch_size)
        is_mixture = self.objective == "mixture_of_denoisers"
        if is_mixture != bool(self.denoisers):
            raise ValueError(
                f"objective is {self.objective} with {len(self.denoisers)} denoisers; "
                "mixture_of_denoisers needs a list, and no other objective reads one; UL2's is the "
                "preset objectives/ul2"
            )
        if is_mixture and self.final_sentinel:
            raise ValueError(
                "final_sentinel is true, but targets of mixture_of_denoisers have no further "
                "sentinel; set it to false"
            )
        if self.from_experiment and self.start_from:
            raise ValueError(
                f"from_experiment is {self.from_experiment!r} and start_from {self.start_from!r}, "
                "but the initial weights are those of one of them; set the other to ''"
            )
        if self.validation_every_steps % self.log_every_steps:
            raise ValueError(
                f"validation_every_steps {self.validation_every_steps} is not a multiple of "
                f"log_every_steps {self.log_every_steps}; the loss is a column of the history"
            )
        return self

    def _check_shuffled(self) -> None:
        """Raise ValueError if the targets of a row cannot hold masked and shuffled pieces."""
        if self.objective != "masked_lm" or not self.masked_lm.shuffle_share:
            return
        masked = round(self.noise_density * self.inputs_length)
        shuffled = self.masked_lm.shuffled(self.inputs_length)
        if self.targets_length < masked + shuffled:
            raise ValueError(
                f"targets_length is {self.targets_length}, but a row of {self.inputs_length} has "
                f"{masked} masked pieces (noise_density {self.noise_density:g}) and {shuffled} "
                f"shuffled ones (masked_lm.shuffle_share {self.masked_lm.shuffle_share:g}); set "
                f"targets_length to at least {masked + shuffled}"
            )


def _check_prefix_density(objective: str, noise_density: float) -> None:
    """Raise ValueError if a prefix cannot leave this share of a text on average."""
    if objective == "prefix_lm" and noise_density > 0.5:
        raise ValueError(f"noise_density of objective prefix_lm is {noise_density}; at most 0.5")


def check_sentinels(pretrain: PretrainSettings, vocab: VocabSettings) -> None:
    """Raise ValueError if the objective writes more sentinels than the vocabulary has.

    Mode tokens are sentinels, and must leave one for spans.
    """
    if pretrain.objective in WITH_SENTINELS and pretrain.steps and not vocab.extra_ids:
        raise ValueError(
            f"vocab.extra_ids is 0, but pretrain.objective {pretrain.objective} writes sentinels, "
            "which vocabularies of BERT, RoBERTa, GPT and ALBERT lack; set pretrain.objective to "
            "prefix_lm or lm, or use the SentencePiece model of a T5"
        )
    mode_tokens = {denoiser.mode_token for denoiser in pretrain.denoisers} - {""}
    if mode_tokens and vocab.extra_ids < 4:
        raise ValueError(
            f"vocab.extra_ids is {vocab.extra_ids}, but the mode tokens of "
            "pretrain.denoisers are three sentinels and spans need at least one; raise it to 4"
        )


class PretrainStage(Section):
    """Settings of `pretrain`."""

    seed: int
    vocab: VocabSettings
    model: ModelSettings
    pretrain: PretrainSettings
    devices: DevicesSettings
