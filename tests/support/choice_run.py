"""RACE by T5, BERT, XLNet and GPT, a task of the run file by T5 and BERT, from files to scores.

python choice_run.py FOLDER TASK prints what each system answers, as JSON. The right option is the
one with the word `green`, so a network that reads the options apart learns it in a few steps.
"""

import io
import json
import random
import sys
import tarfile
from pathlib import Path
from typing import Any

from task_run import build_examples, train_and_score, train_vocabulary

OWN = "mine"
OPTIONS = {"race": 4, OWN: 3}
EXPERIMENTS = {"race": ("text", "bert", "xlnet", "gpt"), OWN: ("text", "bert")}
ROWS = {"train": 64, "dev": 16, "test": 8}
WORDS = ("mill", "river", "grain", "wheel", "hat")
COLOURS = ("red", "blue", "grey", "white", "black", "brown")
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


def question(generator: random.Random, options: int) -> tuple[list[str], int]:
    """Return the options of a question and the index of the right one."""
    right = generator.randrange(options)
    colours = generator.sample(COLOURS, options)
    return [f"a {'green' if n == right else colours[n]} one" for n in range(options)], right


def write_race(path: Path) -> Path:
    """Write an archive in RACE's layout, half of its articles of each level."""
    generator = random.Random(0)
    with tarfile.open(path, "w:gz") as archive:
        for split, count in ROWS.items():
            for number in range(count // 2):
                level = ("middle", "high")[number % 2]
                questions = [question(generator, OPTIONS["race"]) for _ in range(2)]
                article = {
                    "id": f"{level}{number}.txt",
                    "article": f"The {generator.choice(WORDS)} is here.",
                    "questions": ["Which one is it?", "It was _ ."],
                    "options": [options for options, _ in questions],
                    "answers": ["ABCD"[right] for _, right in questions],
                }
                data = json.dumps(article).encode()
                info = tarfile.TarInfo(f"RACE/{split}/{level}/{number}.txt")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return path


def write_own(folder: Path) -> list[Path]:
    """Write a file of rows with three options for each split."""
    generator, paths = random.Random(1), []
    for split, count in ROWS.items():
        rows = []
        for _ in range(count):
            options, right = question(generator, OPTIONS[OWN])
            row = {"text": f"the {generator.choice(WORDS)}", "label": right}
            rows.append(row | {f"o{n}": option for n, option in enumerate(options)})
        paths.append(folder / f"{split}.jsonl")
        paths[-1].write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return paths


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
    raw = folder / "data/tasks" / task
    raw.mkdir(parents=True)
    paths = [write_race(raw / "RACE.tar.gz")] if task == "race" else write_own(raw)
    files = {path.relative_to(folder / "data").as_posix(): sha256_of(path) for path in paths}
    return {
        "run": {"name": "choice"},
        "data": {
            "folder": "data",
            "sources": [
                {"origin": "by hand: https://a.example/", "licence": "none", "files": files}
            ],
        },
        "vocab": {"vocab_size": 45, "extra_ids": 8, "character_coverage": 1.0},
        "model": {**MODEL, "num_decoder_layers": 1},
        "pretrain": {**TRAINING, "steps": 0},
        "finetune": {**TRAINING, "steps": 60},
        "evaluate": {"batch_size": 8, "inputs_length": 48, "max_decode_length": 4},
        "tasks": {
            "names": ["race", "race_middle", "race_high"] if task == "race" else [OWN],
            "segments": True,
            "own": {} if task == "race" else {OWN: own},
        },
        "experiments": [
            {"name": "text", "change": {"finetune.steps": 2}},
            *({"name": name, "change": LABELS[name]} for name in EXPERIMENTS[task][1:]),
        ],
    }


def main(folder: Path, task: str) -> dict[str, Any]:
    """Send a task with options through the stages; return scores and answers."""
    from t5repro.cli.main import main as command
    from t5repro.config.experiments import settings_of_experiment
    from t5repro.config.load import load_settings
    from t5repro.config.task_files import task_files
    from t5repro.plan.memory import texts_of_row

    values = run_values(folder, task)
    run_file = folder / "choice.yaml"
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
    facts["labels"] = manifest["counters"]["labels"]
    return facts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
