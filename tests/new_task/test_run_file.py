"""The run file of a new task: complete, valid, and from a run or a published checkpoint."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from clones import run_in

from t5repro.cli.main import main
from t5repro.config.load import load_run_file
from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabSettings, VocabStage
from t5repro.files import read_json_lines, sha256_of, write_manifest
from t5repro.jobs.corpus import VocabJob

pytestmark = [
    pytest.mark.keras,
    # Another test of this process may have started TensorFlow.
    pytest.mark.filterwarnings("ignore:TensorFlow already runs with"),
]
RUN = Path("results/r")
TRAINING = RUN / "pretrain/baseline"
VOCABULARY = RUN / "vocab/baseline/sentencepiece.model"
VOCAB = VocabSettings(vocab_size=120, extra_ids=8)
MODEL = ModelSettings(
    d_model=16, d_ff=32, d_kv=8, num_heads=2, num_encoder_layers=2, num_decoder_layers=2
)
WORDS = [f"word{number} rows text good and bad word{number + 1}" for number in range(200)]


def write_run() -> None:
    """Write what the stages `vocab`, `tokens` and `pretrain` write, in the current folder."""
    from networks import text_network

    from t5repro.model.checkpoints import save_weights
    from t5repro.vocab.train import make_vocabulary

    sample = Path("sample.txt")
    sample.write_text("\n".join(WORDS), encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": {**VOCAB_TRAINING, "character_coverage": 1.0}}),
            sample=sample,
            model=VOCABULARY,
            pieces=VOCABULARY.with_suffix(".pieces"),
            manifest=VOCABULARY.with_name("manifest.json"),
        )
    )
    tokens = RUN / "tokens/baseline/manifest.json"
    write_manifest(tokens, rule="tokens", settings={}, inputs=[VOCABULARY], outputs=[], counters={})
    for name in ("no_pretraining", "baseline"):
        folder = RUN / "pretrain" / name
        save_weights(
            folder / "weights.safetensors",
            text_network(MODEL, embedding_rows=VOCAB.embedding_rows, dropout_rate=0.0, seed=0),
        )
        write_manifest(
            folder / "manifest.json",
            rule="pretrain",
            settings={
                "model": {**MODEL.model_dump(), "published": "small"},
                "vocab": VOCAB.model_dump(),
                "devices": DevicesSettings(intra_op_threads=1).model_dump(),
            },
            inputs=[tokens],
            outputs=[folder / "weights.safetensors"],
            counters={},
        )


VOCAB_TRAINING = {"vocab_size": VOCAB.vocab_size, "extra_ids": VOCAB.extra_ids}


@pytest.fixture(scope="module")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_run()
    return folder


def in_a_new_process(folder: Path, *words: str) -> None:
    """Run a command of ours; threads of TensorFlow are set once in a process."""
    ran = run_in(folder, sys.executable, "-m", "t5repro", *words)
    assert ran.returncode == 0, ran.stdout


@pytest.fixture(scope="module")
def face(made_run: Path) -> str:
    """The name of a folder with the weights of the run in Hugging Face's form."""
    words = ["--weights", f"{TRAINING}/manifest.json", "--vocabulary", VOCABULARY.as_posix()]
    form = ["--form", "huggingface", "--folder", "face"]
    in_a_new_process(made_run, "weights", "export", *words, *form)
    return "face"


@pytest.fixture
def checkout(made_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, and a file of rows; the current folder."""
    monkeypatch.chdir(made_run)
    rows = [f"row {number} text,{'good' if number % 2 else 'bad'}\n" for number in range(40)]
    Path("rows.csv").write_text("text,label\n" + "".join(rows), encoding="utf-8")
    for path in made_run.glob("*.yaml"):
        path.unlink()
    return made_run


def test_the_run_file_is_complete_and_valid(checkout: Path, capsys: Any) -> None:
    assert main(["tasks", "new", "rows.csv", "--out", "my.yaml"]) == 0
    printed = capsys.readouterr()
    assert "target: label, a label: bad, good\nmetrics: accuracy, f1\n" in printed.err
    assert "t5repro predict results/rows 'rows text: " in printed.out
    assert main(["config", "validate", "my.yaml"]) == 0
    assert "my.yaml is valid: run rows, experiments baseline" in capsys.readouterr().out
    settings = load_run_file(Path("my.yaml"))
    assert settings.model == MODEL
    assert settings.vocab.total_ids == VOCAB.total_ids
    assert settings.vocab.model_file == VOCABULARY.as_posix()
    assert settings.pretrain.start_from == TRAINING.as_posix()  # the run's, and of its baseline
    assert settings.devices.intra_op_threads == 1
    assert not settings.reads_corpus
    files = {path: sha for source in settings.data.sources for path, sha in source.files.items()}
    assert set(files) == {
        "rows.csv",
        *(f"{TRAINING.as_posix()}/{name}" for name in ("manifest.json", "weights.safetensors")),
        VOCABULARY.as_posix(),
    }
    assert files == {path: sha256_of(Path(path)) for path in files}


def test_the_command_that_asks_the_model_is_one_line(checkout: Path, capsys: Any) -> None:
    rows = [{"text": f"good {'and bad ' * 20}\n\nbad word{n}", "label": n % 2} for n in range(60)]
    Path("lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["tasks", "new", "lines.jsonl", "--labels", "bad,good", "--out", "lines.yaml"]) == 0
    (command,) = [line for line in capsys.readouterr().out.splitlines() if "predict" in line]
    words = shlex.split(command)
    assert words[:3] == ["t5repro", "predict", "results/lines"]
    assert words[3].startswith("lines text: good and bad")
    assert len(words[3]) == 100
    Path("lines.yaml").unlink()


def test_the_task_has_at_most_nine_lines(checkout: Path) -> None:
    words = ["--labels", "odd, text", "--name", "mine", "--validation", "0.25", "--out", "my.yaml"]
    assert main(["tasks", "new", "rows.csv", *words]) == 0
    lines = Path("my.yaml").read_text(encoding="utf-8").splitlines()
    first, last = lines.index("    mine:"), lines.index("      metrics: [accuracy, f1]")
    assert last - first + 1 == 9
    assert yaml.safe_load("\n".join(lines))["tasks"]["own"]["mine"]["label_values"] == [
        "bad",
        "good",
    ]


def test_the_rows_are_divided_as_the_run_divides_them(checkout: Path, capsys: Any) -> None:
    assert main(["tasks", "new", "rows.csv", "--out", "my.yaml"]) == 0
    (counts,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("rows:")]
    split = ["train=rows.csv", "validation=rows.csv"]
    words = ["--settings", "my.yaml", "--task", "rows", "--files", *split, "--folder", "out"]
    assert main(["stage", "tasks", *words, "--manifest", "out/manifest.json"]) == 0
    train, held_out = (
        list(read_json_lines(Path(f"out/{name}.jsonl"))) for name in ("train", "validation")
    )
    assert counts == "rows: 32 train (bad 16, good 16), 8 validation (bad 4, good 4)"
    assert (len(train), len(held_out)) == (32, 8)
    numbers = [row["idx"] for row in [*train, *held_out]]
    assert sorted(numbers) == list(range(40))  # each row once, with its number in the file


def test_rows_with_equal_inputs_are_counted_once_more_as_distinct_inputs(
    checkout: Path, capsys: Any
) -> None:
    rows = [f"text {n // 2},{'good' if n // 2 % 2 else 'bad'}" for n in range(40)]
    Path("pairs.csv").write_text("\n".join(["text,label", *rows, ""]), encoding="utf-8")
    assert main(["tasks", "new", "pairs.csv"]) == 0
    (counts,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("rows:")]
    assert counts.endswith("; 20 distinct inputs")


def test_a_label_without_a_row_of_the_evaluated_split_is_named(checkout: Path, capsys: Any) -> None:
    labels = ["good", "bad", "text"] * 3
    rows = [f"row {n},{label},train" for n, label in enumerate(labels)]
    rows += ["row 9,good,dev"]
    Path("some.csv").write_text("\n".join(["text,label,split", *rows, ""]), encoding="utf-8")
    assert main(["tasks", "new", "some.csv"]) == 0
    printed = capsys.readouterr().err.splitlines()
    assert "warning: no row of validation has 'bad' or 'text'" in printed
    assert main(["tasks", "new", "rows.csv"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_targets_that_the_model_cannot_write_are_counted(checkout: Path, capsys: Any) -> None:
    targets = [f"{{word{n}}}" if n % 2 else f"word{n} rows" for n in range(60)]
    rows = [{"text": f"good {n}", "summary": target} for n, target in enumerate(targets)]
    Path("braces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["tasks", "new", "braces.jsonl", "--out", "my.yaml"]) == 0
    assert (
        "warning: 30 of 60 targets have characters that the vocabulary lacks, such as '{'; the "
        "model writes ⁇ in their place"
    ) in capsys.readouterr().err.splitlines()


def test_a_file_with_braces_in_its_name_is_refused_before_snakemake_reads_it(
    checkout: Path, capsys: Any
) -> None:
    Path("rows.csv").rename("rows{b}.csv")
    words = ["tasks", "new", "rows{b}.csv", "--name", "mine", "--out", "my.yaml"]
    code = main(words)
    Path("rows{b}.csv").unlink()
    assert code != 0
    message = capsys.readouterr().err
    assert "'rows{b}.csv' has { and } in its name, which Snakemake takes for a wildcard" in message
    assert not Path("my.yaml").exists()


def test_validation_warns_of_a_device_that_this_machine_lacks(
    checkout: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(settings: DevicesSettings) -> str:
        return "" if settings.kind == "cpu" else f"TensorFlow sees no {settings.kind}"

    monkeypatch.setattr("t5repro.estimate.start.device_fault", fault)
    assert main(["tasks", "new", "rows.csv", "--out", "my.yaml"]) == 0
    warning = "t5repro config validate: warning: TensorFlow sees no gpu"
    assert main(["config", "validate", "my.yaml"]) == 0
    assert warning not in capsys.readouterr().err
    Path("gpu.yaml").write_text("devices: {kind: gpu}\n", encoding="utf-8")
    # Another machine may have the GPU, so the run files are valid.
    assert main(["config", "validate", "my.yaml", "gpu.yaml"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines().count(warning) == 1  # not once a job
    assert "my.yaml, gpu.yaml are valid" in printed.out


def test_a_published_checkpoint_is_a_start_too(checkout: Path, face: str) -> None:
    in_a_new_process(checkout, "tasks", "new", "rows.csv", "--from", face, "--out", "my.yaml")
    settings = load_run_file(Path("my.yaml"))
    assert settings.model == MODEL
    assert settings.vocab.total_ids == VOCAB.total_ids
    assert settings.pretrain.start_from == "face"
    assert "face/model.safetensors" in settings.data.sources[1].files
    assert main(["config", "validate", "my.yaml"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rows.csv", "--name", "r"], "would write into results/r, from which it starts"),
        (["rows.csv", "--name", "squad"], "'squad' is a task of the paper"),
        (["rows.csv", "--name", "My task"], "'My task' is no name of a task; allowed are a-z"),
        (["../rows.csv"], "../rows.csv is not below "),
        (["rows.csv", "--from", "absent"], "there is no folder absent"),
        (["rows.csv", "--from", "results"], "results contains no readable weights"),
        (["rows.csv", "--validation", "absent.csv"], "absent.csv is missing"),
        (["absent.csv", "--from", "nowhere"], "absent.csv is missing; name a file of rows"),
        (
            ["rows.csv", "--metric", "squad", "--validation", "0.00001"],
            "leaves no row for validation; give a larger",
        ),
        (["rows.csv", "--validation", "rows.csv"], "whose rows are those of training"),
        (["spaces.csv"], "the label 'good ' becomes 'good' in the vocabulary"),
        (["unwritable.csv"], "the label 'ж' has a character that the vocabulary lacks"),
        (["few.csv"], "few.csv has no row for"),
    ],
)
def test_what_cannot_be_used_is_refused(
    words: list[str], message: str, checkout: Path, capsys: Any
) -> None:
    Path("unwritable.csv").write_text("text,label\na,ж\nb,ж\nc,d\ne,d\n", encoding="utf-8")
    Path("spaces.csv").write_text("text,label\na,good \nb,good \nc,bad\nd,bad\n", encoding="utf-8")
    Path("few.csv").write_text("text,label\na,x\na,y\n", encoding="utf-8")
    assert main(["tasks", "new", *words, "--out", "my.yaml"]) != 0
    assert message in capsys.readouterr().err
    assert not Path("my.yaml").exists()


def test_altered_weights_are_refused(checkout: Path, capsys: Any) -> None:
    path = TRAINING / "weights.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    try:
        assert main(["tasks", "new", "rows.csv"]) != 0
    finally:
        path.write_bytes(data)
    assert "run t5repro verify" in capsys.readouterr().err


def test_an_altered_vocabulary_is_refused(checkout: Path, capsys: Any) -> None:
    data = VOCABULARY.read_bytes()
    VOCABULARY.write_bytes(data + b" ")
    try:
        assert main(["tasks", "new", "rows.csv"]) != 0
    finally:
        VOCABULARY.write_bytes(data)
    assert "sentencepiece.model has SHA-256" in capsys.readouterr().err


def test_a_network_that_writes_no_text_is_refused_with_the_cure(
    checkout: Path, capsys: Any
) -> None:
    folder = Path("others/labels/pretrain/baseline")
    folder.mkdir(parents=True)
    weights = folder / "weights.safetensors"
    weights.write_bytes((TRAINING / weights.name).read_bytes())
    write_manifest(
        folder / "manifest.json",
        rule="pretrain",
        settings={"model": SIZES["bert_tiny"].model_dump(), "vocab": VOCAB.model_dump()}
        | {"devices": {}},
        inputs=[VOCABULARY],
        outputs=[weights],
        counters={},
    )
    assert main(["tasks", "new", "rows.csv", "--from", "others/labels", "--out", "my.yaml"]) != 0
    message = capsys.readouterr().err
    assert "others/labels/pretrain/baseline has an encoder-only network" in message
    assert "name a T5 or a GPT. To fine-tune this one, write a run file like configs/t" in message
    assert not Path("my.yaml").exists()


def test_imported_weights_are_a_checkpoint_and_no_training(checkout: Path, face: str) -> None:
    in_a_new_process(checkout, "weights", "import", face, "--folder", "imported")
    in_a_new_process(checkout, "tasks", "new", "rows.csv", "--from", "imported", "--out", "my.yaml")
    assert load_run_file(Path("my.yaml")).pretrain.start_from == "imported"


def test_a_file_that_exists_is_not_overwritten(checkout: Path, capsys: Any) -> None:
    Path("my.yaml").write_text("mine\n", encoding="utf-8")
    assert main(["tasks", "new", "rows.csv", "--out", "my.yaml"]) != 0
    assert "my.yaml exists; remove it" in capsys.readouterr().err
    assert Path("my.yaml").read_text(encoding="utf-8") == "mine\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"tasks": {"names": ["rows", "squad"]}},
            "my.yaml:{line}: task 'squad' has no file in data",
        ),
        ({"pretrain": {"start_from": "absent"}}, "start_from is 'absent', but data.sources lists"),
        ({"finetune": {"stepz": 1}}, "unknown setting 'finetune.stepz'"),
    ],
)
def test_validation_finds_what_planning_refuses(
    change: dict[str, Any], message: str, checkout: Path, capsys: Any
) -> None:
    assert main(["tasks", "new", "rows.csv", "--out", "my.yaml"]) == 0
    values = yaml.safe_load(Path("my.yaml").read_text(encoding="utf-8"))
    for section, leaves in change.items():
        values[section] |= leaves
    text = yaml.safe_dump(values, sort_keys=False)
    Path("my.yaml").write_text(text, encoding="utf-8")
    assert main(["config", "validate", "my.yaml"]) != 0
    line = next((n for n, row in enumerate(text.splitlines(), 1) if "- squad" in row), 0)
    assert message.format(line=line) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my.yaml is empty; t5repro tasks new FILE writes a run file"),
        ("run: {name: a\nmodel: [", "my.yaml is not YAML: .*line 1, column 6"),
        ("run: {name: a}\nrun: {name: b}\n", "my.yaml:2: 'run' is set twice"),
    ],
)
def test_validation_names_what_is_no_run_file(
    text: str, message: str, checkout: Path, capsys: Any
) -> None:
    Path("my.yaml").write_text(text, encoding="utf-8")
    assert main(["config", "validate", "my.yaml"]) != 0
    assert re.search(message, capsys.readouterr().err, re.DOTALL)


def test_validation_names_a_raw_file_that_is_missing(checkout: Path, capsys: Any) -> None:
    assert main(["tasks", "new", "rows.csv", "--out", "my.yaml"]) == 0
    Path("rows.csv").unlink()
    assert main(["config", "validate", "my.yaml"]) != 0
    assert "raw files are missing:\nrows.csv: get it from" in capsys.readouterr().err


def test_a_column_of_splits_with_a_test_set_alone_is_evaluated_on_it(
    checkout: Path, capsys: Any
) -> None:
    rows = [
        {"text": f"row {n}", "label": n % 2, "split": "test" if n > 7 else "train"}
        for n in range(9)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    Path("mine.jsonl").write_text(text, encoding="utf-8")
    assert main(["tasks", "new", "mine.jsonl", "--out", "my.yaml"]) == 0
    assert "rows: 8 train (0 4, 1 4), 1 test (0 1, 1 0)" in capsys.readouterr().err
    assert load_run_file(Path("my.yaml")).evaluate.split == "test"
