"""The command line of exchange: weights in and out, a model to serve."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMS = ("huggingface", "keras_hub")


def add_exchange(commands: Any, settings_of: Callable[[argparse.Namespace, str], Any]) -> None:
    """Add the subcommands that exchange weights with other libraries and servers.

    Args:
        commands: the subcommands of the parser.
        settings_of: reads the settings of a rule from the option `--settings`.
    """
    bring = _command(commands, "import_weights", "write published weights as this project's")
    bring.add_argument(
        "source", type=Path, help="folder of Hugging Face, keras-hub, TensorFlow or own weights"
    )
    bring.add_argument("--folder", type=Path, required=True, help="folder to write")
    bring.set_defaults(handler=_import)

    give = _command(commands, "export_weights", "write weights for another library")
    give.add_argument("--weights", type=Path, required=True, help="manifest of the training")
    give.add_argument("--vocabulary", type=Path, required=True, help="SentencePiece model")
    give.add_argument("--form", choices=FORMS, required=True, help="whose files to write")
    give.add_argument("--folder", type=Path, required=True, help="folder to write")
    give.set_defaults(handler=_export)

    serve = _command(commands, "export_server", "write a SavedModel that answers strings")
    serve.add_argument(
        "--settings", required=True, help="the run file, or settings of evaluate_predict as JSON"
    )
    serve.add_argument("--weights", type=Path, required=True, help="manifest of fine-tuning")
    serve.add_argument("--vocabulary", type=Path, required=True, help="SentencePiece model")
    serve.add_argument("--folder", type=Path, required=True, help="folder to write; a new one")
    serve.set_defaults(handler=lambda arguments: _serve(arguments, settings_of))


def _command(commands: Any, name: str, meaning: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    return parser


def _import(arguments: argparse.Namespace) -> None:
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.train.devices import prepare

    prepare(DevicesSettings())
    from t5repro.train.initialize import import_weights

    import_weights(arguments.source, arguments.folder)
    print(f"wrote {arguments.folder}")


def _export(arguments: argparse.Namespace) -> None:
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.train.devices import prepare

    prepare(DevicesSettings())
    from t5repro.train.initialize import export_weights

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
    from t5repro.train.devices import prepare

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
