"""Tasks from files in their original form to scores: what each system answers.

python original_files_run.py FOLDER TASK prints scores and answers as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

from checkout import ROOT
from original_files import OWN, ROWS, write_raw_files
from task_run import build_examples, facts_of_program, train_and_score, train_vocabulary

EXPERIMENTS = {
    "race": ("text", "bert", "xlnet", "gpt"),
    OWN: ("text", "bert"),
    "snli": ("bert",),
    "scitail": ("bert",),
    "newsqa": ("bert",),
    "conll_2003": ("bert",),
}
# Of each sample as many pieces as it yields.
PIECES = {"snli": 45, "scitail": 40, "newsqa": 45, "conll_2003": 35}
WINDOWS = {"newsqa": {"question_length": 16, "stride": 16}}  # of rows of 48
MODEL = {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4, "num_encoder_layers": 1}
TRAINING = {"batch_size": 8, "inputs_length": 48, "targets_length": 8}
LABELS: dict[str, dict[str, Any]] = {
    "bert": {
        "use": ["systems/bert", "sizes/bert_tiny"],
        "model.num_encoder_layers": 1,
        "finetune.learning_rate.factor": 0.001,
        "finetune.batch_size": 16,
        "finetune.steps": 100,
    },
    "xlnet": {
        "use": ["systems/xlnet", "sizes/xlnet_tiny"],
        "model.num_encoder_layers": 1,
        "finetune.learning_rate.factor": 0.001,
        "finetune.batch_size": 16,
        "finetune.steps": 100,
    },
    "gpt": {
        "use": ["systems/gpt", "sizes/gpt_tiny"],
        "model.num_decoder_layers": 1,
        "pretrain.targets_length": 16,
        "finetune.learning_rate.factor": 0.003,
    },
}


def run_values(folder: Path, task: str) -> dict[str, Any]:
    """Return the settings of the run; its raw files are written."""
    from t5repro.files import sha256_of

    names = ("train", "validation", "test")
    own = {
        "files": {name: [f"mine/{split}.jsonl"] for name, split in zip(names, ROWS, strict=True)},
        "fields": ["text"],
        "options": ["o0", "o1", "o2"],
        "target": "label",
        "labels": ["X", "Y", "Z"],
        "label_values": ["0", "1", "2"],
        "metrics": ["accuracy"],
    }
    paths = write_raw_files(folder / "data/tasks", task)
    files = {path.relative_to(folder / "data").as_posix(): sha256_of(path) for path in paths}
    return {
        "run": {"name": "original"},
        "data": {
            "folder": "data",
            "sources": [
                {"origin": "by hand: https://a.example/", "licence": "none", "files": files}
            ],
        },
        "vocab": {"vocab_size": PIECES.get(task, 45), "extra_ids": 8, "character_coverage": 1.0},
        "model": {**MODEL, "num_decoder_layers": 1},
        "pretrain": {**TRAINING, "steps": 0},
        "finetune": {**TRAINING, "steps": 60},
        "evaluate": {"batch_size": 8, "inputs_length": 48, "max_decode_length": 4},
        "tasks": {
            "names": ["race", "race_middle", "race_high"] if task == "race" else [task],
            "segments": True,
            "own": {OWN: own} if task == OWN else {},
            "windows": WINDOWS.get(task, {}),
        },
        "experiments": [
            {"name": "text", "change": {"finetune.steps": 2}},
            *(
                {"name": name, "change": LABELS[name]}
                for name in EXPERIMENTS[task]
                if name in LABELS
            ),
        ],
    }


def run_in_a_new_process(folder: Path, task: str) -> dict[str, Any]:
    """Send a task through the stages; return what `main` does."""
    (folder / "configs").symlink_to(ROOT / "configs")
    return facts_of_program(__file__, ".", task, folder=folder, package=ROOT / "src")


def main(folder: Path, task: str) -> dict[str, Any]:
    """Send a task through the stages; return scores and answers."""
    from t5repro.cli.main import main as command
    from t5repro.config.experiments import settings_of_experiment
    from t5repro.config.load import load_settings
    from t5repro.config.task_files import task_files
    from t5repro.plan.memory import texts_of_row

    values = run_values(folder, task)
    run_file = folder / "original.yaml"
    run_file.write_text(json.dumps(values), encoding="utf-8")
    facts: dict[str, Any] = {"validate": command(["config", "validate", str(run_file)])}
    settings = load_settings(values)
    facts["texts"] = texts_of_row("finetune", settings_of_experiment(settings, "bert"))
    build_examples(folder, settings, task, task_files(settings, task))
    vocabulary = train_vocabulary(folder, settings)
    for name in EXPERIMENTS[task]:
        train_and_score(folder, settings, name, vocabulary, task=task, splits=["validation"])
    facts["scores"] = {
        name: json.loads((folder / f"{name}/score/scores.json").read_text())["tasks"][task]
        for name in EXPERIMENTS[task]
    }
    facts["answers"] = {
        name: [
            json.loads(line)["prediction"]
            for line in (folder / f"{name}/validation/{task}.jsonl").read_text().splitlines()
        ]
        for name in EXPERIMENTS[task]
    }
    manifest = json.loads((folder / "bert/finetune/manifest.json").read_text())
    facts["labels"] = manifest["counters"].get("labels", {})
    facts["read"] = json.loads((folder / "tasks/manifest.json").read_text())["counters"]
    return facts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
