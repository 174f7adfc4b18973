"""Every setting: its type, unit, range, meaning, and the paper's baseline as its value.

This is the one truth: `configs/base.yaml`, `configs/schema.json` and `docs/settings.md` are
generated from it (`make generate`), and a run file states only what it changes. To add a
setting, add a field here and name its section in `config/stages.py` if a stage newly reads it.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from t5repro.config.crawl import LimitsSettings, SelectSettings
from t5repro.config.field import Name as Name
from t5repro.config.field import Section as Section
from t5repro.config.field import setting
from t5repro.config.own_tasks import OwnTask, TextSettings
from t5repro.config.training import FinetuneSettings as FinetuneSettings
from t5repro.config.training import LearningRate as LearningRate
from t5repro.config.training import TrainingSettings as TrainingSettings

Sha256 = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[a-z]{2})?$")]
VariantName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9._-]*$")]

LANES = 128  # rows of the embedding are padded to a multiple of this (TPU tiles)
MOST_SEED = 2**31 - 1


class RunSettings(Section):
    """What this run is called."""

    name: Name = setting("base", "folder of the run below `results/`")


class RawFiles(Section):
    """Raw files of one origin and licence."""

    origin: str = Field(description="where they can be had: an address, or who made them")
    licence: str = Field(description="licence of the contents, as its owner names it")
    files: dict[str, Sha256] = Field(
        description="path below `data.folder` -> sha256 (empty: not known, recorded when read)"
    )


class DataSettings(Section):
    """The frozen raw inputs: everything that the graph does not make itself."""

    folder: str = setting("data", "folder that holds the raw inputs")
    source: str = setting(
        "", "folder to copy the raw inputs from; empty: they are in `data.folder` already"
    )
    download: bool = setting(
        False, "fetch what is missing from its origin; without it nothing touches the network"
    )
    sources: list[RawFiles] = setting([], "every raw file with its origin, licence and hash")


class CleanSettings(Section):
    """Rules for one page of the crawl (paper section 2.2)."""

    max_page_chars: int = setting(190_000, "longer pages are dropped; characters", ge=1)
    max_word_chars: int = setting(
        1000, "a line with a longer word is dropped; characters; 0: no such rule", ge=0
    )
    min_words_per_line: int = setting(5, "shorter lines are dropped; words", ge=1)
    min_sentences: int = setting(3, "pages with fewer are dropped; sentences", ge=0)
    min_paragraphs: int = setting(
        0, "pages with fewer long paragraphs are dropped, as mC4 does with 3; lines", ge=0
    )
    paragraph_chars: int = setting(200, "a line is a long paragraph from this on; characters", ge=1)
    bad_words: Literal["page", "line_2019", "off"] = setting(
        "page",
        "where listed words are looked for: the finished page, each line as the code of 2019 "
        "did, or nowhere (`en.noblocklist`)",
    )
    bad_word_fraction: float = setting(
        1.0,
        "share of the pages with a listed word that are dropped, chosen by their URL; mC4: 0.999",
        gt=0,
        le=1,
    )
    enabled: bool = setting(
        True, "false: no rule looks at lines or sentences, as in the paper's unfiltered C4"
    )


class DedupSettings(Section):
    """Removal of repeated text (paper section 2.2)."""

    unit: Literal["three_sentence_span", "line", "off"] = setting(
        "three_sentence_span",
        "what is kept only once in the whole corpus: spans of three sentences as in the paper, "
        "lines as in TFDS 3, or nothing",
    )
    min_sentences: int = setting(3, "pages left with fewer are dropped; sentences", ge=0)


class SparkSettings(Section):
    """Apache Spark, when it builds the corpus (`docs/run_on_spark.md`)."""

    master: str = setting(
        "local[*]", "the cluster: `spark://host:7077`, `yarn`, `k8s://…`, or `local[2]`"
    )
    partitions: int = setting(
        0, "tasks of a sorting step; 0: by the number of rows and of cores", ge=0
    )
    driver_memory: str = setting("2g", "memory of the driver, which never holds a page's text")
    executor_memory: str = setting("2g", "memory of an executor's JVM; Python's is beside it")
    python: str = setting(
        "", "interpreter on the workers, with this project's packages; empty: the path of this one"
    )
    packages: list[str] = setting([], "Maven coordinates of further jars")
    conf: dict[str, str] = setting({}, "further settings of Spark, by their names, `spark.…`")


class C4Settings(Section):
    """From WET files to the corpus (`docs/decisions`, paper section 2.2)."""

    recipe: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")] = setting(
        "paper", "file of parameters below `configs/c4/` to start from"
    )
    variant: VariantName = setting(
        "", "file below `configs/c4/variants/` that is laid over the recipe; empty: none"
    )
    crawl: list[str] = setting(
        ["crawl/*"], "which raw files are WET files: patterns over paths in `data.sources`"
    )
    crawl_paths: str = setting(
        "", "raw file that lists WET paths, one a line (`wet.paths.gz`); used instead of `c4.crawl`"
    )
    crawl_prefix: str = setting(
        "", "where the listed paths begin: a folder, or an address, `https://`, `s3://` or `gs://`"
    )
    clean_shards: int = setting(
        1, "number of cleaning jobs; WET file i goes to job i modulo this", ge=1
    )
    on_bad_record: Literal["skip", "fail"] = setting(
        "skip",
        "what damage in the crawl does: `skip` counts and names it and goes on with the next page "
        "that is whole, `fail` stops at the first",
    )
    limits: LimitsSettings = setting(LimitsSettings(), "what one record may need")
    languages: list[Language] = setting(
        ["en", "de", "fr", "ro"], "languages the corpus is split into; others are dropped"
    )
    min_language_probability: float = setting(
        0.99, "langdetect's probability under which a page is dropped", gt=0, le=1
    )
    require_pages: bool = setting(
        True,
        "a language of `c4.languages` without a page stops the run; false: its files are empty",
    )
    select: SelectSettings = setting(SelectSettings(), "which addresses are read at all")
    punkt_parameters: dict[Language, str] = setting(
        {},
        "language -> folder below `data.folder` with its Punkt parameters in NLTK's `punkt_tab` "
        "layout; they go before trained ones",
    )
    punkt_training: bool = setting(
        True,
        "train Punkt parameters on the crawl for every language without given ones; false: those "
        "are split by Punkt without parameters",
    )
    punkt_language: str = setting(
        "",
        "language whose parameters split every page, as the released code does with `en`; empty: "
        "those of the page's own language, guessed by langdetect",
        pattern=r"^([a-z]{2,3}(-[a-z]{2})?)?$",
    )
    punkt_sample_files: int = setting(
        8, "WET files that Punkt parameters are trained on, evenly spread over the crawl", ge=1
    )
    punkt_sample_chars: int = setting(
        4_000_000, "text that Punkt parameters are trained on; characters a language", ge=1000
    )
    bad_word_lists: dict[Language, str] = setting(
        {}, "language -> raw file with one listed word a line; languages without pass"
    )
    output_shards: int = setting(1, "Parquet files per language and split", ge=1)
    validation_modulus: int = setting(
        1000, "a page is held out when md5(normalised URL) modulo this is 0; pages", ge=2
    )
    engine: Literal["local", "spark"] = setting(
        "local", "what runs the steps: this machine or Apache Spark; both make the same bytes"
    )
    spark: SparkSettings = setting(SparkSettings(), "the cluster, if `c4.engine` is `spark`")
    clean: CleanSettings = setting(CleanSettings(), "rules for one page")
    dedup: DedupSettings = setting(DedupSettings(), "removal of repeated text")


class VocabSettings(Section):
    """The SentencePiece vocabulary (paper section 3.1.3)."""

    vocab_size: int = setting(32_000, "pieces, without the sentinels", ge=16, le=1_000_000)
    extra_ids: int = setting(100, "sentinels `<extra_id_k>` on top", ge=0, le=10_000)
    language_parts: dict[Language, int] = setting(
        {"en": 10, "de": 1, "fr": 1, "ro": 1}, "mix of the training sample; parts of characters"
    )
    sample_chars: int = setting(
        100_000_000, "characters of text the vocabulary is trained on, over all languages", ge=1000
    )
    character_coverage: float = setting(
        0.9995, "share of characters covered by pieces", gt=0.9, le=1
    )
    model_file: str = setting(
        "",
        "raw file with a SentencePiece model to use instead of training one, such as that of a "
        "published checkpoint; sentinels are appended if it has none",
    )
    sample_seed: int = setting(
        0, "seed of the draw of the sample; arms of several seeds share a vocabulary", ge=0
    )
    required_characters: str = setting(
        "",
        "characters that get a piece however rare they are: a small corpus may lack one that "
        "label words need, such as the underscore of `not_entailment`",
    )

    @property
    def total_ids(self) -> int:
        """Ids in use: pieces and sentinels."""
        return self.vocab_size + self.extra_ids

    @property
    def embedding_rows(self) -> int:
        """Rows of the embedding: `total_ids` rounded up to a multiple of 128."""
        return -(-self.total_ids // LANES) * LANES


class TokensSettings(Section):
    """The corpus as ids."""

    languages: list[Language] = setting(["en"], "languages of the corpus to pre-train on")


class ModelSettings(Section):
    """The Transformer (paper sections 2.1 and 3.2)."""

    published: str = setting(
        "",
        "name of a published size, such as `small`, `11b`, `2x` or `v1_1_base` "
        "(`config/published_sizes.py`): it sets widths, heads, blocks, `feed_forward` and "
        "`tie_embeddings`; what is stated beside it goes on top",
    )
    architecture: Literal[
        "encoder_decoder", "shared_encoder_decoder", "language_model", "prefix_language_model"
    ] = setting(
        "encoder_decoder",
        "two stacks, two stacks with one set of weights, or a decoder alone that reads inputs and "
        "targets as one text: causal, or with inputs that see each other whole",
    )
    target_marker: Literal["eos", "target_word"] = setting(
        "eos",
        "tokens between inputs and targets of a decoder alone: EOS as in the released code, or in "
        "tasks the word `target:` as in the paper's text",
    )
    d_model: int = setting(768, "width of the residual stream; features", ge=1)
    d_ff: int = setting(3072, "width inside the feed-forward layers; features", ge=1)
    d_kv: int = setting(64, "width of one attention head; features", ge=1)
    num_heads: int = setting(12, "attention heads", ge=1)
    num_encoder_layers: int = setting(12, "blocks of the encoder", ge=1)
    num_decoder_layers: int = setting(12, "blocks of the decoder", ge=1)
    feed_forward: Literal["relu", "gated_gelu"] = setting(
        "relu", "T5 1.0 uses `relu`, T5 1.1 `gated_gelu`"
    )
    tie_embeddings: bool = setting(True, "one matrix for input and output (T5 1.0)")
    relative_position_buckets: int = setting(32, "buckets of the position bias", ge=2)
    relative_position_max_distance: int = setting(
        128, "distance from which all share one bucket; tokens", ge=2
    )
    norm_epsilon: float = setting(1e-6, "added to the mean square in RMS norm", gt=0)

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


class PretrainSettings(TrainingSettings):
    """Unsupervised pre-training (paper sections 3.1.4 and 3.3)."""

    targets_length: int = setting(192, "tokens of a row of targets", ge=4)
    objective: Literal[
        "replace_spans", "drop_tokens", "mass_style", "bert_style", "deshuffling", "prefix_lm", "lm"
    ] = setting(
        "replace_spans",
        "what becomes of corrupted tokens, or how a text is split: a row of the paper's tables 4 "
        "to 7 (`docs/paper_rows.md`)",
    )
    noise_mask: Literal["iid", "random_spans"] = setting(
        "iid", "which tokens are corrupted: each on its own (the baseline), or in spans"
    )
    noise_density: float = setting(0.15, "share of corrupted tokens", gt=0, lt=1)
    mean_noise_span_length: float = setting(
        3.0, "mean length of a corrupted span of `random_spans`; tokens", ge=1
    )
    final_sentinel: bool = setting(
        False,
        "close targets that end in noise with one more sentinel, as figure 2 of the paper shows "
        "and the released code does not",
    )
    unique_tokens: int = setting(
        0,
        "train on the first so many tokens of the corpus alone, again and again; tokens; 0: all",
        ge=0,
    )
    chunk_tokens: int = setting(
        65_536,
        "of a longer document one chunk of this many is used, drawn by the seed; tokens; 0: whole "
        "documents",
        ge=0,
    )
    start_from: str = setting(
        "",
        "folder of raw files with a published checkpoint to begin with: Hugging Face, keras-hub, "
        "the T5 release's TensorFlow files or this project's; empty: fresh weights",
    )
    concatenate_documents: bool = setting(
        True,
        "true: documents run on into each other and are cut to full rows, as in the baseline; "
        "false: each document is cut on its own and rows are packed with segment masks",
    )

    @property
    def inputs_room(self) -> int:
        """Tokens of inputs in a row: none for a language model, whose text is all targets."""
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


class TasksSettings(Section):
    """Downstream tasks as text (paper section 2.4)."""

    names: list[Name] = setting(
        [
            "glue_cola",
            "glue_sst2",
            "glue_mrpc",
            "glue_stsb",
            "glue_rte",
            "super_glue_boolq",
            "super_glue_copa",
            "squad",
            "cnn_dailymail",
            "wmt_en_de",
            "wmt_en_fr",
            "wmt_en_ro",
        ],
        "tasks of the run, by name (`t5repro list_tasks`)",
    )
    folder: str = setting("tasks", "folder of the task files below `data.folder`")
    files: dict[Name, dict[str, list[str]]] = setting(
        {},
        "task -> split -> files below the folder, where they differ from the original archive "
        "(a translation names source and target file)",
    )
    mixture: str = setting(
        "",
        "a named mixture (`t5repro list_mixtures`): it sets `tasks.names`, `finetune.mixture`, "
        "`.mixture_examples` and `.mixture_weights`; empty: those say it themselves",
    )
    own: dict[Name, OwnTask] = setting(
        {}, "tasks of your own, by name (`docs/add_a_task.md`); name them in `tasks.names`, too"
    )
    text: TextSettings = setting(TextSettings(), "the paper's text in place of the code's")


class EvaluateSettings(Section):
    """Prediction and scores (paper section 2.4)."""

    batch_rows: int = setting(32, "examples decoded together", ge=1)
    inputs_length: int = setting(512, "inputs are cut to this; tokens", ge=4)
    max_decode_length: int = setting(128, "targets are cut to this; tokens", ge=1)
    beam_tasks: list[Name] = setting(
        [],
        "tasks decoded by beam search, the others are greedily; the paper's largest models use "
        "it for cnn_dailymail and the wmt tasks",
    )
    beam_width: int = setting(4, "answers that beam search keeps alive", ge=1, le=64)
    length_penalty: float = setting(
        0.6, "alpha of beam search: log p is divided by ((5 + length) / 6)^alpha", ge=0
    )
    checkpoints: Literal["last", "all"] = setting(
        "last",
        "checkpoints of fine-tuning that are evaluated: the last, or each that "
        "`finetune.keep_checkpoints` keeps, of which the best step of each group of tasks is "
        "reported beside the last",
    )
    ensemble: list[Name] = setting(
        [],
        "experiments whose fine-tuned models answer together, by the mean of their logits; empty: "
        "the model of this experiment alone",
    )
    split: Literal["validation", "test"] = setting("validation", "split that is scored")
    max_examples: int = setting(0, "examples scored per task; 0: all", ge=0)


class DevicesSettings(Section):
    """Where training and prediction run."""

    kind: Literal["cpu", "gpu", "mirrored", "tpu"] = setting(
        "cpu", "one CPU or GPU, all local GPUs in step, or a TPU slice"
    )
    tpu: str = setting("local", "name or address of the TPU for `TPUClusterResolver`")
    intra_op_threads: int = setting(
        2, "threads inside one operation on a CPU; a fixed number keeps results exact", ge=1
    )
    instruction_set: Literal["avx2", "native"] = setting(
        "avx2",
        "of matrix products on a CPU: what every x86-64 server has, with the same bytes on all of "
        "them, or the processor's widest, up to twice as fast where that is AVX-512",
    )
    precision: Literal["float32", "bfloat16"] = setting(
        "float32", "of activations; weights and optimizer are always float32"
    )
    steps_per_execution: int = setting(1, "training steps per call from the host", ge=1)
    cloud_folder: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9+.-]*://.+)?$")] = (
        setting(
            "",
            "Cloud Storage folder (`gs://...`) that gets a copy of every state of an unfinished "
            "training and the TensorBoard files; a preempted machine takes its disk along; empty: "
            "only local",
        )
    )
    slice: Annotated[str, StringConstraints(pattern=r"^([a-z0-9]+:[0-9x]+)?$")] = setting(
        "",
        "TPU slice that `t5repro preflight` compiles pre-training for before anything else runs, "
        "such as `v5e:4x4`; empty: no preflight",
    )


class Experiment(Section):
    """One arm of a study: the settings it changes against the run's baseline."""

    name: Name = Field(description="name of the arm")
    row: str = setting("", "label of the paper's table row it stands for")
    change: dict[str, Any] = setting({}, "dotted setting -> value")
    seeds: list[Annotated[int, Field(ge=0, le=MOST_SEED)]] = setting(
        [],
        "train this arm once for each; the first keeps the arm's name, the others are called "
        "`NAME_seed_N`; empty: once, with the run's seed",
    )

    @model_validator(mode="after")
    def _seeds_differ(self) -> "Experiment":
        if repeated := sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1}):
            raise ValueError(f"seeds of experiment {self.name!r} repeat {repeated}")
        if self.seeds and "seed" in self.change:
            raise ValueError(
                f"experiment {self.name!r} states both seeds {self.seeds} and change.seed "
                f"{self.change['seed']}; keep one of them"
            )
        return self


class Settings(Section):
    """All settings of a run."""

    run: RunSettings = setting(RunSettings(), "what this run is called")
    seed: int = setting(
        0, "seed of every random stream but the vocabulary's sample", ge=0, le=MOST_SEED
    )
    data: DataSettings = setting(DataSettings(), "raw inputs")
    c4: C4Settings = setting(C4Settings(), "corpus")
    vocab: VocabSettings = setting(VocabSettings(), "vocabulary")
    tokens: TokensSettings = setting(TokensSettings(), "corpus as ids")
    model: ModelSettings = setting(ModelSettings(), "model")
    pretrain: PretrainSettings = setting(PretrainSettings(), "pre-training")
    tasks: TasksSettings = setting(TasksSettings(), "downstream tasks")
    finetune: FinetuneSettings = setting(FinetuneSettings(), "fine-tuning")
    evaluate: EvaluateSettings = setting(EvaluateSettings(), "prediction and scores")
    devices: DevicesSettings = setting(DevicesSettings(), "devices")
    experiments: list[Experiment] = setting(
        [Experiment(name="baseline")], "arms of the study, in the report's order"
    )

    @model_validator(mode="after")
    def _sections_fit_together(self) -> "Settings":
        languages = set(self.c4.languages)
        for key, chosen in (
            ("tokens.languages", set(self.tokens.languages)),
            ("vocab.language_parts", set(self.vocab.language_parts)),
        ):
            if missing := sorted(chosen - languages):
                raise ValueError(
                    f"{key} names {missing}, which c4.languages {sorted(languages)} does not build"
                )
        if self.c4.limits.record_chars < self.c4.clean.max_page_chars:
            raise ValueError(
                f"c4.limits.record_chars {self.c4.limits.record_chars} is under "
                f"c4.clean.max_page_chars {self.c4.clean.max_page_chars}, so pages that the rules "
                "allow would be lost; raise it"
            )
        every = self.devices.steps_per_execution
        for name, plan in (("pretrain", self.pretrain), ("finetune", self.finetune)):
            if plan.kept_steps and plan.checkpoint_every_steps % every:
                raise ValueError(
                    f"{name}.checkpoint_every_steps {plan.checkpoint_every_steps} is no multiple "
                    f"of devices.steps_per_execution {every}, so {name}.keep_checkpoints 'all' "
                    "cannot keep the weights of those steps"
                )
        if missing := sorted(set(self.evaluate.beam_tasks) - set(self.tasks.names)):
            raise ValueError(
                f"evaluate.beam_tasks names {missing}, which tasks.names does not hold"
            )
        if self.evaluate.checkpoints == "all" and self.finetune.keep_checkpoints != "all":
            raise ValueError(
                "evaluate.checkpoints 'all' needs finetune.keep_checkpoints 'all', which is "
                f"{self.finetune.keep_checkpoints!r}; weights that are not kept cannot answer"
            )
        if self.evaluate.ensemble and (
            self.evaluate.checkpoints == "all" or self.evaluate.beam_tasks
        ):
            raise ValueError(
                f"evaluate.ensemble {self.evaluate.ensemble} answers greedily with the last "
                "weights of its members; evaluate.checkpoints must be 'last' and "
                "evaluate.beam_tasks empty"
            )
        for key, given in (
            ("c4.languages", self.c4.languages),
            ("tokens.languages", self.tokens.languages),
            ("vocab.language_parts", list(self.vocab.language_parts)),
            ("tasks.names", self.tasks.names),
            ("experiments", self.experiments),
        ):
            if not given:
                raise ValueError(f"{key} is empty; name at least one")
        if self.pretrain.objective == "lm" and not self.model.decoder_only:
            raise ValueError(
                f"pretrain.objective lm has no inputs, which model.architecture "
                f"{self.model.architecture} needs; use prefix_lm, or a language model"
            )
        for key, listed in (
            ("experiments", [item.name for item in self.experiments]),
            ("tasks.names", list(self.tasks.names)),
            ("evaluate.ensemble", list(self.evaluate.ensemble)),
        ):
            if repeated := sorted({item for item in listed if listed.count(item) > 1}):
                raise ValueError(f"{key} holds {repeated} more than once; names must differ")
        if unknown := sorted(set(self.finetune.mixture_weights) - set(self.tasks.names)):
            raise ValueError(
                f"finetune.mixture_weights names {unknown}, which tasks.names does not hold; "
                f"allowed: {sorted(self.tasks.names)}"
            )
        return self
