"""Subcommands of the rules: one row per stage.

A stage that needs more than a call of its function has a handler in `cli/c4.py` or below.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.artifacts import OPTIMIZER, STEP_PREFIX, WEIGHTS
from t5repro.cli import c4
from t5repro.cli.arguments import (
    DATA,
    KEPT_STEPS,
    MANIFEST,
    Argument,
    add_log,
    add_settings,
    by_folder,
    by_stem,
    named_paths,
    optional_path,
    pair_lists,
    path,
    paths,
)
from t5repro.cli.parsers import Commands, add_command, add_group
from t5repro.cli.preflight import add_preflight
from t5repro.cli.stage_command import StageCommand, entry_function, run_stage
from t5repro.errors import SettingsError


def _adopt_or_train(settings: Any, arguments: argparse.Namespace, values: dict[str, Any]) -> None:
    from t5repro.vocab.train import adopt_vocabulary, train_vocabulary

    sample, model_file = values.pop("sample"), values.pop("model_file")
    if (sample is None) == (model_file is None):
        raise SettingsError("vocab needs either --sample or --model-file, and not both")
    if model_file is None:
        train_vocabulary(settings, sample=sample, **values)
    else:
        adopt_vocabulary(settings, source=model_file, **values)


def _predict(settings: Any, arguments: argparse.Namespace, values: dict[str, Any]) -> None:
    from t5repro.model.devices import prepare

    devices = prepare(settings.devices)  # before TensorFlow is imported
    from t5repro.evaluate.predict import predict

    predict(settings, devices=devices, **values)


def _train(settings: Any, arguments: argparse.Namespace, values: dict[str, Any]) -> None:
    from t5repro.lineage.sources import closure

    train = entry_function(f"train.{arguments.stage}:{arguments.stage}")
    train(settings, code=closure(arguments.stage), **values)


def _report(settings: Any, arguments: argparse.Namespace, values: dict[str, Any]) -> None:
    from t5repro.report.experiments import histories_by_arm
    from t5repro.report.page import write_report

    pretrain, finetune = values.pop("pretrain_history"), values.pop("finetune_history")
    histories = histories_by_arm(settings.settings, pretrain, finetune)
    write_report(settings, histories=histories, **values)


VOCABULARY = path("vocabulary", "SentencePiece model", kind="input")
TOKEN_FILES = ("*.ids", "*.offsets")
SENTENCE_FILES = ("*.sentences", "word_starts")
TRAINING = (
    path("folder", "folder of weights to write"),
    path("work", "folder of the checkpoints of an unfinished training"),
    optional_path("monitor", "folder of training speeds and TensorBoard files"),
    Argument(
        "resume_changed",
        "resume from the newest checkpoint although settings, inputs, code or libraries differ; "
        "the manifest records it",
        {"action": "store_true"},
    ),
    Argument("loggers", "`run.loggers` as JSON", {"default": "[]"}, json.loads),
    MANIFEST,
)
STAGE_COMMANDS = (
    StageCommand(
        "data_fetch",
        "copy or download the raw inputs",
        "data.fetch:fetch",
        (path("downloads", "folder that keeps archives between runs"),),
    ),
    StageCommand(
        "data", "check the raw inputs against the run file", "data.check:check", (MANIFEST,)
    ),
    StageCommand(
        "c4_punkt",
        "train Punkt parameters on a part of the crawl",
        c4.train_punkt,
        (*c4.CRAWL, DATA, path("folder", "folder of parameters to write"), MANIFEST),
    ),
    StageCommand(
        "c4_clean",
        "clean the pages of one shard of the crawl",
        c4.clean_shard,
        (
            *c4.CRAWL,
            *c4.LISTS,
            optional_path("domains", "list of the domains to read", kind="raw"),
            optional_path("urls", "list of the addresses to read", kind="raw"),
            DATA,
            Argument("shard", "number of this job, from 0", {"type": int, "default": 0}),
            c4.ENGINE,
            paths("output", "Parquet files of pages to write, `c4.clean_parts`", kind="other"),
            MANIFEST,
        ),
        on_engine=True,
    ),
    StageCommand(
        "corpus",
        "read the user's own text in place of a crawl",
        "c4.own_text.read:read_own_text",
        (
            paths("files", "files of own text", kind="raw"),
            Argument(
                "validation_files",
                "files of the validation split",
                {"type": Path, "nargs": "*", "default": []},
                kind="raw",
            ),
            path("root", "folder of the raw inputs"),
            *c4.LISTS,
            optional_path("withdrawn", "list of withdrawn URLs, ids and domains"),
            DATA,
            path("folder", "folder of rows to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "c4_dedup",
        "decide which pages and spans to remove",
        c4.deduplicate,
        (c4.CLEANED, c4.ENGINE, path("folder", "folder of decisions to write"), MANIFEST),
        on_engine=True,
    ),
    StageCommand(
        "c4",
        "write the corpus by language and split",
        c4.write_corpus,
        (
            c4.CLEANED,
            path("decisions", "folder of the output of c4_dedup", kind="input"),
            *c4.LISTS,
            DATA,
            c4.ENGINE,
            path("folder", "folder of the corpus to write"),
            MANIFEST,
        ),
        on_engine=True,
    ),
    StageCommand(
        "vocab_sample",
        "draw the text that the vocabulary is trained on",
        "vocab.sample:sample_corpus",
        (
            path("corpus", "manifest of the corpus", kind="input", listed=("*.parquet",)),
            path("output", "text to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "vocab",
        "train the SentencePiece vocabulary",
        _adopt_or_train,
        (
            optional_path("sample", "output of vocab_sample", kind="input"),
            optional_path("model_file", "SentencePiece model to use instead of training one"),
            path("model", "model to write"),
            path("pieces", "list of pieces to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "tokens",
        "write the corpus as ids",
        "vocab.encode:encode_corpus",
        (
            path("corpus", "manifest of the corpus", kind="input", listed=("*.parquet",)),
            VOCABULARY,
            path("folder", "folder of ids to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "sentences",
        "find the sentences of the corpus in its ids",
        "c4.sentence_starts:write_sentences",
        (
            path("corpus", "manifest of the corpus", kind="input", listed=("*.parquet",)),
            path("tokens", "manifest of the ids", kind="input", listed=TOKEN_FILES),
            VOCABULARY,
            c4.PUNKT,
            DATA,
            path("folder", "folder of sentences to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "pretrain",
        "pre-train on the corpus",
        _train,
        (
            optional_path(
                "tokens",
                "manifest of the ids, unless no step reads them",
                kind="input",
                listed=TOKEN_FILES,
            ),
            optional_path(
                "sentences",
                "manifest of the sentences, if the objective is masked_lm",
                kind="input",
                listed=SENTENCE_FILES,
            ),
            optional_path("start_from", "folder of a published checkpoint"),
            *TRAINING,
        ),
    ),
    StageCommand(
        "tasks",
        "write the examples of one task as text",
        "tasks.build:write_examples",
        (
            Argument("task", "name of the task", {"required": True}),
            Argument(
                "files",
                "original files, split by split",
                {"nargs": "+", "required": True, "metavar": "SPLIT=FILE"},
                pair_lists,
                kind="raw",
            ),
            DATA,
            path("folder", "folder of examples to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "finetune",
        "fine-tune on the mixture of tasks",
        _train,
        (
            path(
                "weights",
                "manifest of the training to start from",
                kind="input",
                listed=(WEIGHTS, OPTIMIZER),
            ),
            paths("examples", "training examples; the folder names the task", by_folder),
            Argument(
                "sample_examples",
                "validation examples to predict during the training",
                {"type": Path, "nargs": "*", "default": []},
                by_folder,
                kind="input",
            ),
            Argument(
                "sample_every_steps", "interval of these predictions", {"type": int, "default": 0}
            ),
            Argument("sample_count", "number of examples of a task", {"type": int, "default": 0}),
            VOCABULARY,
            optional_path(
                "tokens",
                "manifest of the ids, if the mixture contains the corpus",
                kind="input",
                listed=TOKEN_FILES,
            ),
            *TRAINING,
        ),
    ),
    StageCommand(
        "evaluate_predict",
        "predict the targets of every task",
        _predict,
        (
            paths(
                "weights",
                "manifest of the fine-tuned weights; of an ensemble, of each member",
                listed=(WEIGHTS, f"{STEP_PREFIX}*/{WEIGHTS}"),
            ),
            KEPT_STEPS,
            paths("examples", "examples to predict; the folder names the task", by_folder),
            VOCABULARY,
            path("folder", "folder of predictions to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "evaluate_score",
        "score the predictions",
        "evaluate.score:score",
        (
            paths(
                "predictions",
                "predictions; the file is named after the task",
                by_stem,
                listed=(f"{STEP_PREFIX}*/*.jsonl",),
            ),
            paths("train", "training examples, for the majority class", by_folder),
            KEPT_STEPS,
            path("output", "scores to write"),
            MANIFEST,
        ),
    ),
    StageCommand(
        "report",
        "write the report of a run",
        _report,
        (
            named_paths("scores", "scores of each experiment", "EXPERIMENT"),
            named_paths("pretrain_history", "history of its pre-training", "EXPERIMENT"),
            named_paths("finetune_history", "history of its fine-tuning", "EXPERIMENT"),
            named_paths("corpus", "manifest of its corpus, if any", "EXPERIMENT", required=False),
            named_paths("tokens", "manifest of its ids, if any", "EXPERIMENT", required=False),
            path("html", "page to write"),
            path("trace", "lineage page to write"),
            path("csv", "table to write"),
            Argument(
                "predictions",
                "its predictions; the files are named after the tasks",
                {"nargs": "*", "default": [], "metavar": "EXPERIMENT=FILE"},
                pair_lists,
                kind="input",
            ),
            named_paths(
                "answers", "page with its answers to write", "TASK", required=False, kind="other"
            ),
            Argument(
                "pages",
                "first training file of each language of its corpus, if any",
                {"nargs": "*", "default": [], "metavar": "EXPERIMENT=FILE"},
                pair_lists,
                kind="input",
            ),
            named_paths(
                "vocabularies",
                "its SentencePiece model, next to the list of its pieces",
                "EXPERIMENT",
                listed=("*.vocab",),
            ),
            path("corpus_page", "page of the corpus and the vocabulary to write"),
            named_paths(
                "metrics", "its scores and last losses to write", "EXPERIMENT", kind="other"
            ),
            MANIFEST,
        ),
    ),
)


def add_stages(commands: Commands) -> None:
    """Add the command of every stage."""
    group = add_group(commands, "stage", "do the job of a rule; the rules call it")
    add_preflight(group)
    for row in STAGE_COMMANDS:
        parser = add_command(group, row.stage, partial(run_stage, row), row.help)
        parser.set_defaults(stage=row.stage)
        add_settings(parser)
        add_log(parser)
        for argument in row.arguments:
            argument.add_to(parser)
