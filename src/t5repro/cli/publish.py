"""The commands that import and export weights, and export a model to serve."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMS = ("huggingface", "keras_hub")


def add_exchange(commands: Any, settings_of: Callable[[argparse.Namespace, str], Any]) -> None:
    """Add the subcommands that import and export weights and models.

    Args:
        commands: the subcommands of the parser.
        settings_of: reads the settings of a rule from the option `--settings`.
    """
    importer = _command(
        commands, "import_weights", "write published weights in this project's form"
    )
    importer.add_argument(
        "source", type=Path, help="folder of Hugging Face, keras-hub, TensorFlow or own weights"
    )
    importer.add_argument("--folder", type=Path, required=True, help="folder to write")
    importer.set_defaults(handler=_import)

    exporter = _command(commands, "export_weights", "write weights for another library")
    exporter.add_argument("--weights", type=Path, required=True, help="manifest of the training")
    exporter.add_argument("--vocabulary", type=Path, required=True, help="SentencePiece model")
    exporter.add_argument("--form", choices=FORMS, required=True, help="library to write for")
    exporter.add_argument("--folder", type=Path, required=True, help="folder to write")
    exporter.set_defaults(handler=_export)

    server = _command(commands, "export_server", "write a SavedModel from strings to strings")
    server.add_argument(
        "--settings", required=True, help="the run file, or settings of evaluate_predict as JSON"
    )
    server.add_argument("--weights", type=Path, required=True, help="manifest of fine-tuning")
    server.add_argument("--vocabulary", type=Path, required=True, help="SentencePiece model")
    server.add_argument("--folder", type=Path, required=True, help="folder to write; a new one")
    server.set_defaults(handler=lambda arguments: _serve(arguments, settings_of))


def _command(commands: Any, name: str, meaning: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    return parser


def _import(arguments: argparse.Namespace) -> None:
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.model.devices import prepare

    prepare(DevicesSettings())
    from t5repro.train.import_weights import import_weights

    import_weights(arguments.source, arguments.folder)
    print(f"wrote {arguments.folder}")


def _export(arguments: argparse.Namespace) -> None:
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.model.devices import prepare

    prepare(DevicesSettings())
    from t5repro.publish.weights import export_weights

    export_weights(
        arguments.weights,
        vocabulary=arguments.vocabulary,
        form=arguments.form,
        folder=arguments.folder,
    )
    print(f"wrote {arguments.folder}")


def _serve(
    arguments: argparse.Namespace, settings_of: Callable[[argparse.Namespace, str], Any]
) -> None:
    from t5repro.model.devices import prepare

    settings = settings_of(arguments, "evaluate_predict")
    prepare(settings.devices)
    from t5repro.publish.saved_model import export_server

    export_server(
        settings,
        weights=arguments.weights,
        vocabulary=arguments.vocabulary,
        folder=arguments.folder,
    )
    print(f"wrote {arguments.folder}")
