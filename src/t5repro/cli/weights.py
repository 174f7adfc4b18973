"""Commands of the group `weights`: import, export, a model to serve, a folder for the Hub."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t5repro.artifacts import MANIFEST, VOCABULARY
from t5repro.cli.arguments import add_experiment, parsed_settings
from t5repro.cli.parsers import Commands, add_command, add_group
from t5repro.config.validation import parse_stage
from t5repro.errors import SettingsError

if TYPE_CHECKING:
    from t5repro.hub.model_facts import ModelFacts

FORMS = ("huggingface", "keras_hub")
STAGES = ("finetune", "pretrain")


def add_weights(commands: Commands) -> None:
    """Add the commands."""
    group = add_group(
        commands,
        "weights",
        "import, export, saved-model, publish, verify: models of other libraries",
    )
    importer = add_command(
        group, "import", _import, "write published weights in this project's format"
    )
    importer.add_argument(
        "source",
        type=Path,
        help="folder of Hugging Face, keras-hub, TensorFlow, T5X or own weights",
    )
    exporter = add_command(group, "export", _export, "write weights for another library")
    exporter.add_argument("--form", choices=FORMS, required=True, help="library to write for")
    server = add_command(group, "saved-model", _serve, "write a SavedModel from strings to strings")
    server.add_argument("--settings", help="of the predictions, with --weights: run file or JSON")
    for parser in (exporter, server):
        parser.add_argument(
            "run", type=Path, nargs="?", help="folder of the run; else --weights and --vocabulary"
        )
        parser.add_argument("--weights", type=Path, help="manifest of a training, without a run")
        parser.add_argument("--vocabulary", type=Path, help="its SentencePiece model")
    hub = add_command(
        group, "publish", _publish, "write a model of a run as a folder for the Hugging Face Hub"
    )
    hub.add_argument("run", type=Path, help="folder of the run, such as results/demo")
    hub.add_argument("--license", help="licence of the weights, as apache-2.0; else none is stated")
    hub.add_argument("--upload", metavar="OWNER/NAME", help="also upload it as this model")
    hub.add_argument(
        "--sign", action="store_true", help="also sign it with the key that T5REPRO_MODEL_KEY names"
    )
    hub.add_argument("--private", action="store_true", help="with --upload: a new model is private")
    for parser in (exporter, server, hub):
        add_experiment(parser, "an experiment with its seed, as baseline_seed_1")
    for parser in (exporter, hub):
        parser.add_argument(
            "--stage", default="", choices=STAGES, help="default: the experiment's last one"
        )
    verifier = add_command(group, "verify", _verify, "check the signature of a published folder")
    verifier.add_argument("folder", type=Path, help="folder of weights publish --sign")
    verifier.add_argument(
        "--public-key", type=Path, required=True, help="of the signer, PEM, from a trusted source"
    )
    for parser in (importer, exporter, server, hub):
        parser.add_argument("--folder", type=Path, required=True, help="folder to write")


def _import(arguments: argparse.Namespace) -> None:
    from t5repro.engines.devices import default_devices, prepare

    prepare(default_devices())
    from t5repro.train.import_weights import import_weights

    import_weights(arguments.source, arguments.folder)
    print(f"wrote {arguments.folder}")


def _require_files(arguments: argparse.Namespace) -> None:
    for option, name in (("weights", MANIFEST), ("vocabulary", VOCABULARY)):
        path: Path = getattr(arguments, option)
        if path.is_dir():
            raise SettingsError(
                f"--{option} {path} is a folder; name a file, such as {path / name}"
            )


def _export(arguments: argparse.Namespace) -> None:
    manifest, vocabulary = _files(arguments, _facts(arguments, arguments.stage))
    from t5repro.engines.devices import default_devices, prepare

    prepare(default_devices())
    from t5repro.publish.weights import export_weights

    export_weights(manifest, vocabulary=vocabulary, form=arguments.form, folder=arguments.folder)
    print(f"wrote {arguments.folder}")


def _facts(arguments: argparse.Namespace, stage: str) -> "ModelFacts | None":
    """Return the facts of a model of the run, if one is named.

    Raises:
        SettingsError: neither a run nor both files are named, or more than that.
    """
    files = (arguments.weights, arguments.vocabulary)
    if arguments.run is None and None not in files:
        return None
    if arguments.run is None or files != (None, None):
        raise SettingsError(
            "name a run, such as results/demo, or a training with --weights and its vocabulary "
            "with --vocabulary"
        )
    from t5repro.engines.devices import default_devices, set_environment

    set_environment(default_devices())  # before a reader of weights imports the engine
    from t5repro.hub.model_facts import model_facts

    return model_facts(arguments.run, arm=arguments.experiment, stage=stage)


def _files(arguments: argparse.Namespace, facts: "ModelFacts | None") -> tuple[Path, Path]:
    """Return the manifest of the training and the vocabulary, of the run or as they are named."""
    if facts:
        root = facts.run.root
        return root / facts.training.manifest, root / facts.vocabulary.path
    _require_files(arguments)
    return arguments.weights, arguments.vocabulary


def _serve(arguments: argparse.Namespace) -> None:
    facts = _facts(arguments, "finetune")
    manifest, vocabulary = _files(arguments, facts)
    settings = _settings_of_predictions(arguments, facts)
    from t5repro.engines.devices import prepare

    prepare(settings.devices)  # before TensorFlow is imported
    from t5repro.publish.saved_model import export_server

    export_server(settings, weights=manifest, vocabulary=vocabulary, folder=arguments.folder)
    print(f"wrote {arguments.folder}")


def _settings_of_predictions(arguments: argparse.Namespace, facts: "ModelFacts | None") -> Any:
    """Return the settings that a model answers with: the run's own, or those that are named.

    Raises:
        SettingsError: neither exists.
    """
    if arguments.settings:
        return parsed_settings(arguments, "evaluate_predict")
    if facts is None or facts.prediction is None:
        what = "--weights names no settings" if facts is None else f"{facts.name} predicted nothing"
        raise SettingsError(f"{what}; name a run file with --settings")
    return parse_stage("evaluate_predict", json.dumps(facts.prediction.settings))


def _publish(arguments: argparse.Namespace) -> None:
    from t5repro.engines.devices import default_devices, set_environment

    set_environment(default_devices())  # before a reader of weights imports the engine
    from t5repro.hub.publish import publish
    from t5repro.hub.signature import configured_key
    from t5repro.hub.upload import check_upload, upload

    # Before the work.
    key = configured_key(Path()) if arguments.sign else None
    if arguments.upload:
        check_upload(arguments.upload)
    files = publish(
        arguments.run,
        folder=arguments.folder,
        arm=arguments.experiment,
        stage=arguments.stage,
        licence=arguments.license,
        key=key,
    )
    print(f"wrote {arguments.folder}: {', '.join(files)}")
    if arguments.upload:
        print(upload(arguments.folder, arguments.upload, private=arguments.private))


def _verify(arguments: argparse.Namespace) -> None:
    from t5repro.hub.signature import verify

    files = verify(arguments.folder, arguments.public_key)
    print(f"{arguments.folder}: {len(files)} files as {arguments.public_key} signed them")
