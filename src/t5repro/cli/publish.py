"""Subcommands that exchange models: import and export of weights, a model to serve."""

import argparse
from pathlib import Path

from t5repro.cli.arguments import Commands, add_command, add_settings, parsed_settings

FORMS = ("huggingface", "keras_hub")


def add_publish(commands: Commands) -> None:
    """Add the subcommands."""
    importer = add_command(
        commands, "import_weights", _import, "write published weights in this project's format"
    )
    importer.add_argument(
        "source", type=Path, help="folder of Hugging Face, keras-hub, TensorFlow or own weights"
    )
    exporter = add_command(commands, "export_weights", _export, "write weights for another library")
    exporter.add_argument("--form", choices=FORMS, required=True, help="library to write for")
    server = add_command(
        commands, "export_server", _serve, "write a SavedModel from strings to strings"
    )
    add_settings(server)
    for parser, weights in (
        (exporter, "manifest of the training"),
        (server, "manifest of fine-tuning"),
    ):
        parser.add_argument("--weights", type=Path, required=True, help=weights)
        parser.add_argument("--vocabulary", type=Path, required=True, help="SentencePiece model")
    for parser in (importer, exporter, server):
        parser.add_argument("--folder", type=Path, required=True, help="folder to write")


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


def _serve(arguments: argparse.Namespace) -> None:
    from t5repro.model.devices import prepare

    settings = parsed_settings(arguments, "evaluate_predict")
    prepare(settings.devices)  # before TensorFlow is imported
    from t5repro.publish.saved_model import export_server

    export_server(
        settings,
        weights=arguments.weights,
        vocabulary=arguments.vocabulary,
        folder=arguments.folder,
    )
    print(f"wrote {arguments.folder}")
