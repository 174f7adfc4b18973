"""`dvc.yaml` and the settings it follows, made from the graph that Snakemake resolves.

One stage per rule and node. Its command runs that rule alone, its parameters are the leaves of the
settings that its jobs receive, its dependencies their inputs and code. Leaves stand in a file of
their own, ``configs/resolved/<run>.json``, which the first stage makes from the run file: a changed
run file is noticed by ``dvc repro`` without anyone regenerating anything.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from t5repro.config import load
from t5repro.config.field import Section
from t5repro.config.schema import Settings
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.errors import SettingsError
from t5repro.files import write_text
from t5repro.lineage.sources import CLOSURES, write_closures
from t5repro.stages import depends_on_device
from t5repro.versions.snakemake_graph import PROFILE, RUN_FILE, Stage, resolve

PIPELINE = Path("dvc.yaml")
RESOLVED = Path("configs/resolved")
SETTINGS_STAGE = "settings"
SOURCES = "src/t5repro"
# DVC's run cache leaves these keys out of its key at any depth: a changed value would be restored
# as the old one (dvc/stage/cache.py, `_get_cache_hash`).
KEYS_THE_RUN_CACHE_DROPS = {"size", "nfiles"}
TOLERANT = {"gpu", "mirrored", "tpu"}  # devices that agree to a tolerance only
HEADER = """\
# Generated from the graph in Snakefile by `t5repro dvc generate`; do not edit.
# One stage for each rule and node. dvc.lock is the truth about contents.
"""


def resolved_path(settings: Settings) -> Path:
    """Return where the leaves of a run's stages stand."""
    return RESOLVED / f"{settings.run.name}.json"


def generated(run_file: Path = RUN_FILE, profile: str = PROFILE) -> dict[Path, str]:
    """Return path -> text of `dvc.yaml` and of the resolved settings."""
    return texts(*resolve(run_file), run_file, profile)


def texts(settings: Settings, stages: list[Stage], run_file: Path, profile: str) -> dict[Path, str]:
    """Return path -> text of what `generated` names, from a graph resolved already."""
    return {
        PIPELINE: pipeline_text(settings, stages, run_file, profile),
        resolved_path(settings): resolved_text(settings, stages),
    }


def drifted(run_file: Path = RUN_FILE, profile: str = PROFILE) -> list[str]:
    """Return one line for each generated file that is not what would be generated now."""
    return [
        f"{path} is not what {run_file} and the graph say; run `t5repro config generate`"
        for path, text in generated(run_file, profile).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def read_pipeline() -> dict[str, Any]:
    """Return the content of `dvc.yaml`."""
    content: dict[str, Any] = yaml.safe_load(PIPELINE.read_text(encoding="utf-8"))
    return content


def profile_of_pipeline() -> str:
    """Return the Snakemake profile that the stages of `dvc.yaml` name."""
    words = read_pipeline()["stages"][SETTINGS_STAGE]["cmd"].split()
    return str(words[words.index("--profile") + 1])


def write_resolved(run_file: Path = RUN_FILE) -> None:
    """Write the leaves of every stage, for DVC to compare."""
    write_closures()
    settings, stages = resolve(run_file)
    write_text(resolved_path(settings), resolved_text(settings, stages))


def resolved_text(settings: Settings, stages: list[Stage]) -> str:
    """Return the leaves of every stage, as JSON."""
    values = {stage.name: _tree(leaves_of(settings, stage)) for stage in stages}
    return json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def settings_of_stage(settings: Settings, stage: Stage) -> dict[str, Any]:
    """Return what the jobs of a stage receive."""
    arm = stage.node or settings.experiments[0].name
    return stage_settings(load.settings_of_experiment(settings, arm), stage.base)


def leaves_of(settings: Settings, stage: Stage) -> dict[str, Any]:
    """Return dotted leaf -> value of the settings that a stage's jobs receive.

    Lists and mappings become JSON text: as values of their own, DVC would leave some keys out.

    Raises:
        SettingsError: a leaf has a name that DVC's run cache leaves out.
    """
    leaves = dict(_leaves(settings_of_stage(settings, stage), stage_model(stage.base)))
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
            continue  # decides no byte: no stage is given it
        value, inner = values[name], field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from _leaves(value, inner, f"{prefix}{name}.")
        elif isinstance(value, str | int | float):
            yield f"{prefix}{name}", value
        else:
            yield f"{prefix}{name}", json.dumps(value, sort_keys=True, ensure_ascii=False)


def _tree(leaves: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in leaves.items():
        *folders, leaf = name.split(".")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = value
    return tree


def pipeline_text(settings: Settings, stages: list[Stage], run_file: Path, profile: str) -> str:
    """Return `dvc.yaml`."""
    folders = {stage.folder for stage in stages}
    content: dict[str, Any] = {
        "stages": {
            SETTINGS_STAGE: _settings_stage(settings, run_file, profile),
            **{stage.name: _stage(settings, stage, folders, run_file, profile) for stage in stages},
        },
        "metrics": [
            f"{stage.folder}/scores.json" for stage in stages if stage.rule == "evaluate_score"
        ],
        "plots": _plots(settings, stages),
    }
    return HEADER + yaml.safe_dump(content, sort_keys=False, width=100, allow_unicode=True)


def _settings_stage(settings: Settings, run_file: Path, profile: str) -> dict[str, Any]:
    recipes = sorted(path.as_posix() for path in load.RECIPES.glob("*.yaml"))
    return {
        "cmd": f"t5repro dvc settings --run-file {run_file.as_posix()} --profile {profile}",
        "desc": "the settings of every stage and the code of every rule",
        "deps": [run_file.as_posix(), *recipes, SOURCES],
        "outs": [
            {resolved_path(settings).as_posix(): {"cache": False}},
            {CLOSURES.as_posix(): {"cache": False}},
        ],
    }


def _stage(
    settings: Settings, stage: Stage, folders: set[str], run_file: Path, profile: str
) -> dict[str, Any]:
    leaves = [f"{stage.name}.{name}" for name in leaves_of(settings, stage)]
    described: dict[str, Any] = {
        "cmd": _commands(stage, run_file, profile),
        "deps": [*_dependencies(stage, folders), *stage.code],
    }
    if leaves:
        described["params"] = [{resolved_path(settings).as_posix(): leaves}]
    described["outs"] = [stage.folder]
    described["meta"] = {"reproducible": reproducible(settings, stage)}
    return described


def _commands(stage: Stage, run_file: Path, profile: str) -> list[str]:
    """Return what DVC runs: the rule, and the question whether its code stood still meanwhile."""
    with open(f"{profile}/profile.yaml", encoding="utf-8") as handle:
        usual = yaml.safe_load(handle)["configfile"]
    other = "" if usual == run_file.as_posix() else f" --configfile {run_file.as_posix()}"
    target = f"stage_{stage.name}"
    return [
        # Without --allowed-rules a job whose input looks older would be run inside this stage.
        f"snakemake --profile {profile}{other} --allowed-rules {stage.rule} {target} -- {target}",
        f"t5repro seal --run-file {run_file.as_posix()} --only {stage.name}",
    ]


def _dependencies(stage: Stage, folders: set[str]) -> list[str]:
    """Return what a stage depends on; a manifest stands for its folder, whose files it lists."""
    found = []
    for path in stage.inputs:
        folder, _, name = path.rpartition("/")
        found.append(folder if name == "manifest.json" and folder in folders else path)
    whole = set(found) & folders
    return [path for path in dict.fromkeys(found) if path in whole or _parent(path) not in whole]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def reproducible(settings: Settings, stage: Stage) -> str:
    """Return `exact` or `tolerance`: how closely another machine repeats the stage."""
    if depends_on_device(stage.base) and settings.devices.kind in TOLERANT:
        return "tolerance"
    return "exact"


def _plots(settings: Settings, stages: list[Stage]) -> list[dict[str, Any]]:
    plots = []
    for rule in ("pretrain", "finetune"):
        histories = {
            f"{stage.folder}/history.csv": "loss"
            for stage in stages
            if stage.rule == rule and leaves_of(settings, stage)[f"{rule}.steps"]
        }
        if histories:
            plots.append({f"{rule}_loss": {"x": "step", "y": histories, "title": f"{rule}: loss"}})
    return plots
