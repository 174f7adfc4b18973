"""`dvc.yaml` and the settings that it tracks, generated from the graph that Snakemake plans.

One stage per rule and node: its command runs only this rule, its parameters are the settings that
its jobs receive, its dependencies their inputs and code. The settings are in a file of their own,
``configs/resolved/<run>.json``, below one key for each stage. The first stage makes it from the run
file, so ``dvc repro`` detects an edited run file by itself.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from t5repro.artifacts import HISTORY, METRICS, WEIGHTS
from t5repro.config import experiments
from t5repro.config.field import Section
from t5repro.config.project_files import SNAKEFILE
from t5repro.config.reproducibility import EXACT, Reproducibility, training_reproducibility
from t5repro.config.run_file import included_files
from t5repro.config.schema import Settings
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.errors import SettingsError
from t5repro.files import read_file, write_text
from t5repro.lineage.dvc_lock import Lock, LockedStage, parse_yaml
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.sources import CLOSURES, RESOLVED, SOURCES, write_closures
from t5repro.lineage.workflow_files import RULE_FILES
from t5repro.stages import depends_on_device
from t5repro.versions.pipeline_yaml import to_yaml
from t5repro.versions.snakemake_graph import PROFILE, RUN_FILE, PlannedStage, resolve
from t5repro.versions.stage_dependencies import dependencies, folder_contents, md5_of

PIPELINE = Path("dvc.yaml")
SETTINGS_STAGE = "settings"
SETTINGS_COMMAND = "t5repro dvc settings"
TRAININGS = ("pretrain", "finetune")
RULE_SOURCES = (SNAKEFILE.as_posix(), RULE_FILES.as_posix())
# DVC's run cache drops these keys at any depth of a stage: with another value it would restore the
# outputs of the old one (dvc/stage/cache.py, `_get_cache_hash`).
KEYS_THE_RUN_CACHE_DROPS = {"size", "nfiles"}
HEADER = """\
# Generated from the graph in Snakefile by `t5repro dvc generate`; do not edit.
# One stage for each rule and node. dvc.lock is the truth about contents. A stage has equal bytes on
# every machine, except where `meta` says otherwise.
"""


def resolved_path(settings: Settings) -> Path:
    """Return the path of the resolved settings of a run."""
    return RESOLVED / f"{settings.run.name}.json"


@dataclass(frozen=True)
class VersionedRun:
    """The run that `dvc.yaml` versions: its run file, and the Snakemake profile of its stages."""

    run_file: Path = RUN_FILE
    profile: str = PROFILE


def versioned_run() -> VersionedRun | None:
    """Return the run that `dvc.yaml` was generated for; None if there is none.

    The text is searched, because `dvc.yaml` can have the marks of a conflict of git.
    """
    if not PIPELINE.exists():
        return None
    try:
        text = read_file(PIPELINE).decode("utf-8")
        entry = re.search(rf"cmd: .*{SETTINGS_COMMAND}.*(\n {{6,}}.*)*", text)
        if entry is None:
            return None
        arguments = shlex.split(yaml.safe_load(entry[0])["cmd"])
        _, run_file, _, profile = arguments[len(SETTINGS_COMMAND.split()) :]
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
        raise _unreadable(error) from error
    return VersionedRun(Path(run_file), profile)


def generated(run_file: Path | None = None, profile: str | None = None) -> dict[Path, str]:
    """Return path -> text of `dvc.yaml` and of the resolved settings.

    Args:
        run_file: the run to version; None for the one that `dvc.yaml` versions.
        profile: Snakemake profile of the stages; None for the one in `dvc.yaml`.
    """
    current = versioned_run() or VersionedRun()
    run_file, profile = run_file or current.run_file, profile or current.profile
    return texts(*resolve(run_file), run_file, profile)


def texts(
    settings: Settings, stages: list[PlannedStage], run_file: Path, profile: str
) -> dict[Path, str]:
    """Return the files of `generated` from a planned graph."""
    return {
        PIPELINE: pipeline_text(settings, stages, run_file, profile),
        resolved_path(settings): resolved_text(settings, stages),
    }


def drifted(run_file: Path | None = None, profile: str | None = None) -> list[str]:
    """Return one line for each file of `generated` that is out of date."""
    return [
        f"{path} is not in sync with the run file and the graph; run `t5repro config generate`"
        for path, text in generated(run_file, profile).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def changed_settings_stage(lock: Lock, pipeline: Mapping[str, Any], hasher: Hasher) -> str | None:
    """Return what differs from the lock's entry of the settings: a file, or the command.

    Args:
        lock: the lock.
        pipeline: the stages of `dvc.yaml`.
        hasher: hashes the files of the checkout.

    Returns:
        None if the entry is the present one.
    """
    entry, locked = pipeline[SETTINGS_STAGE], lock.stages.get(SETTINGS_STAGE, LockedStage())
    outputs: list[str] = [path for output in entry["outs"] for path in output]
    dependencies: list[str] = entry["deps"]
    for names, hashes in ((dependencies, locked.deps), (outputs, locked.outs)):
        for path in sorted({*names, *hashes}):
            if path not in names or hashes.get(path) != md5_of(path, hasher):
                return path
    return None if locked.cmd == entry["cmd"] else f"the command of {SETTINGS_STAGE}"


def lock_is_current(lock: Lock, pipeline: Mapping[str, Any], hasher: Hasher) -> bool:
    """Return whether the lock has the stages of `dvc.yaml` in its order, and the present settings.

    See `changed_settings_stage` for the arguments.
    """
    # Another order would be a difference in git without a changed stage.
    in_order = list(lock.stages) == [name for name in pipeline if name in lock.stages]
    return in_order and changed_settings_stage(lock, pipeline, hasher) is None


def read_pipeline() -> dict[str, Any]:
    """Return the content of `dvc.yaml`."""
    try:
        content: dict[str, Any] = parse_yaml(read_file(PIPELINE))
        if not isinstance(content.get("stages"), dict):
            raise ValueError("it has no stages")
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise _unreadable(error) from error
    return content


def _unreadable(error: Exception) -> SettingsError:
    return SettingsError(
        f"{PIPELINE} cannot be read ({error}); restore it with git checkout, or delete it and run "
        "t5repro dvc generate"
    )


def write_resolved(run_file: Path = RUN_FILE) -> None:
    """Write the code files and the resolved settings, which DVC compares."""
    write_closures()
    settings, stages = resolve(run_file)
    write_text(resolved_path(settings), resolved_text(settings, stages))


def resolved_text(settings: Settings, stages: list[PlannedStage]) -> str:
    """Return the leaves of every stage, as JSON."""
    values = {stage.name: _tree(leaves_of(settings, stage)) for stage in stages}
    return json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def settings_of_stage(settings: Settings, stage: PlannedStage) -> dict[str, Any]:
    """Return the settings that the jobs of a stage receive: of its node, or of the run."""
    if stage.node:
        settings = experiments.settings_of_experiment(settings, stage.node)
    return stage_settings(settings, stage.table_name)


def leaves_of(settings: Settings, stage: PlannedStage) -> dict[str, Any]:
    """Return dotted leaf -> value of the settings that a stage's jobs receive.

    Lists and mappings become JSON text, because DVC's run cache would drop some of their keys.

    Raises:
        SettingsError: a leaf has a name that DVC's run cache drops.
    """
    # By the model and not by the values: a mapping with keys of the user is one leaf.
    leaves = dict(_leaves(settings_of_stage(settings, stage), stage_model(stage.table_name)))
    for name in leaves:
        if dropped := KEYS_THE_RUN_CACHE_DROPS.intersection(name.split(".")):
            raise SettingsError(
                f"setting {name!r}: DVC's run cache ignores keys called {sorted(dropped)}; "
                "choose another name"
            )
    return leaves


def _leaves(
    values: Mapping[str, Any], model: type[Section], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        if name not in values:
            continue  # it does not affect artifacts, so no stage receives it
        value, field_type = values[name], field.annotation
        if isinstance(field_type, type) and issubclass(field_type, Section):
            yield from _leaves(value, field_type, f"{prefix}{name}.")
        elif isinstance(value, str | int | float):
            yield f"{prefix}{name}", value
        else:
            yield f"{prefix}{name}", json.dumps(value, sort_keys=True, ensure_ascii=False)


def _tree(leaves: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in leaves.items():
        *folders, leaf = name.split(".")
        branch = tree
        for folder in folders:
            # Nested again, because DVC reads a dot in a key as a level.
            branch = branch.setdefault(folder, {})
        branch[leaf] = value
    return tree


def pipeline_text(
    settings: Settings, stages: list[PlannedStage], run_file: Path, profile: str
) -> str:
    """Return `dvc.yaml`."""
    contents = folder_contents(settings, stages)
    content: dict[str, Any] = {
        "stages": {
            SETTINGS_STAGE: _settings_stage(settings, run_file, profile),
            **{
                stage.name: {
                    "cmd": _commands(stage, run_file, profile),
                    "deps": [*dependencies(stage, contents), *stage.code],
                    **_stage(settings, stage),
                }
                for stage in stages
            },
        },
        "metrics": [
            path
            for stage in stages
            for job in stage.jobs
            for path in job.outputs
            if path.endswith(METRICS)
        ],
        "plots": _plots(settings, stages),
        "artifacts": _artifacts(stages),
    }
    return HEADER + to_yaml(content)


def _settings_stage(settings: Settings, run_file: Path, profile: str) -> dict[str, Any]:
    included = [path.as_posix() for path in included_files(run_file)]
    # DVC cannot watch an installed package: its code is then compared at every `dvc repro`.
    has_sources = Path(SOURCES).is_dir()
    code = {} if has_sources else {"always_changed": True}
    sources = [SOURCES.as_posix()] if has_sources else []
    return {
        "cmd": f"{SETTINGS_COMMAND} --run-file {_quoted(run_file)} --profile {profile}",
        "desc": "the settings of every stage and the code of every rule",
        "deps": [run_file.as_posix(), *included, *sources, *RULE_SOURCES],
        **code,
        "outs": [
            {resolved_path(settings).as_posix(): {"cache": False}},
            {CLOSURES.as_posix(): {"cache": False}},
        ],
    }


def _stage(settings: Settings, stage: PlannedStage) -> dict[str, Any]:
    """Return the settings and outputs of a stage."""
    entry: dict[str, Any] = {}
    if leaves_of(settings, stage):  # DVC tracks all that is below a key
        # The parent key, not each leaf: `dvc.yaml` stays short, and a new setting is compared, too.
        entry["params"] = [{resolved_path(settings).as_posix(): [stage.name]}]
    # The folder and not its files: one hash, and DVC stores equal files once all the same.
    entry["outs"] = [stage.folder]
    if (kind := reproducibility(settings, stage)) != EXACT:
        entry["meta"] = {"reproducible": kind}
    return entry


def _commands(stage: PlannedStage, run_file: Path, profile: str) -> list[str]:
    """Return the commands of a stage: run its rule, then check its records."""
    with open(f"{profile}/profile.yaml", encoding="utf-8") as handle:
        default_run_file = yaml.safe_load(handle)["configfile"]
    is_default = run_file.as_posix() == default_run_file
    option = "" if is_default else f" --configfile {_quoted(run_file)}"
    target = f"stage_{stage.name}"
    return [
        # Without --allowed-rules Snakemake would also run an earlier job whose files look older.
        f"snakemake {target} --profile {profile}{option} --allowed-rules {stage.rule} {target}",
        f"t5repro seal --only {stage.name}",
    ]


def _quoted(path: Path) -> str:
    return shlex.quote(path.as_posix())


def reproducibility(settings: Settings, stage: PlannedStage) -> Reproducibility:
    """Return how closely another machine repeats a stage from raw files."""
    if depends_on_device(stage.table_name):
        return training_reproducibility(settings.model_dump(mode="json"))
    return EXACT


def _artifacts(stages: list[PlannedStage]) -> dict[str, dict[str, str]]:
    """Return the trained models; DVC allows no underscore in their names."""
    return {
        stage.name.replace("_", "-"): {
            "path": f"{stage.folder}/{WEIGHTS}",
            "type": "model",
            "desc": f"weights of {stage.rule}, experiment {stage.node}",
        }
        for stage in stages
        if stage.rule in TRAININGS
    }


def _plots(settings: Settings, stages: list[PlannedStage]) -> list[dict[str, Any]]:
    plots = []
    for rule in TRAININGS:
        histories = {
            f"{stage.folder}/{HISTORY}": _losses(rule, leaves_of(settings, stage))
            for stage in stages
            if stage.table_name == rule and leaves_of(settings, stage)[f"{rule}.steps"]
        }
        if histories:
            plots.append({f"{rule}_loss": {"x": "step", "y": histories, "title": f"{rule}: loss"}})
    return plots


def _losses(rule: str, leaves: Mapping[str, Any]) -> str | list[str]:
    """Return the columns of the history of a training that are losses."""
    # Fine-tuning receives this setting of pre-training too, and does not measure held-out text.
    measured = rule == "pretrain" and leaves["pretrain.validation_every_steps"]
    return ["loss", "validation_loss"] if measured else "loss"
