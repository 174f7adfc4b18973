"""A folder for the Hub: complete, from records alone, and the same bytes every time."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from finished_run import RUN, TEXTS, VOCABULARY
from made_graphs import manifest
from published_run import write_published_run

import t5repro
from t5repro.cli.main import main
from t5repro.errors import ArtifactError, CheckpointError, LineageError
from t5repro.export.facts import Run, read_run
from t5repro.files import read_json, sha256_of, write_json_lines
from t5repro.hub.model_facts import model_facts, pretraining_corpus, shared_prefixes
from t5repro.hub.publish import publish
from t5repro.lineage.graph import Artifact, Job

pytestmark = [pytest.mark.keras, pytest.mark.filterwarnings("ignore:TensorFlow already runs with")]
FILES = {
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer_config.json",
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_published_run(folder)
    return folder


@pytest.fixture
def checkout(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the run; the current folder."""
    shutil.copytree(published, tmp_path / "checkout")
    monkeypatch.chdir(tmp_path / "checkout")
    return tmp_path / "checkout"


def card_of(folder: str) -> tuple[dict[str, Any], str]:
    _, header, text = Path(folder, "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text


def test_the_folder_has_what_the_hub_expects_and_answers_as_the_run(checkout: Path) -> None:
    assert set(publish(RUN, folder=Path("out"))) == FILES == {p.name for p in Path("out").iterdir()}
    assert read_json(Path("out/generation_config.json")) == {
        "decoder_start_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "max_new_tokens": 12,
    }
    tokenizer = read_json(Path("out/tokenizer_config.json"))
    assert (tokenizer["model_max_length"], tokenizer["extra_ids"]) == (64, 8)
    model = t5repro.load_model("out")
    run = t5repro.load(RUN)
    assert isinstance(model, t5repro.Model)
    assert isinstance(run, t5repro.Run)
    lengths = {"evaluate": run.model().settings.evaluate}
    model.settings = model.settings.model_copy(update=lengths)
    assert model.predict(TEXTS) == run.predict(TEXTS)


def test_the_metadata_are_read_by_the_library_of_the_hub(checkout: Path) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    publish(RUN, folder=Path("out"), licence="apache-2.0")
    card = huggingface_hub.ModelCard.load("out/README.md").data
    assert (card.language, card.license, card.library_name) == (
        ["en"],
        "apache-2.0",
        "transformers",
    )
    assert card.datasets == ["owner/crawl"]
    assert (card.pipeline_tag, card.base_model) == ("text-generation", None)
    assert card.tags == ["t5", "text2text-generation", "t5repro"]
    (result,) = card.eval_results
    assert (result.task_type, result.metric_type) == ("text-generation", "accuracy")
    assert result.metric_value == 62.5
    assert (result.dataset_type, result.dataset_split) == ("t5repro-r-one", "validation")
    assert result.dataset_name == "one: 11 rows, origin: written | by <hand>"
    assert result.dataset_revision == sha256_of(RUN / "tasks/one/validation.jsonl")


@pytest.mark.parametrize(
    ("origin", "model"),
    [
        ("https://huggingface.co/google-t5/t5-small/resolve/main/model.safetensors", "t5-small"),
        ("https://huggingface.co/datasets/google-t5/t5-small/resolve/main/model.safetensors", None),
        ("https://example.org/model.safetensors", None),
    ],
)
def test_the_card_names_the_model_that_training_started_from(
    checkout: Path, origin: str, model: str | None
) -> None:
    def change(name: str, section: str, **values: object) -> None:
        path = RUN / name / "manifest.json"
        record = json.loads(path.read_bytes())
        del record["checksum"]
        record["settings"][section] |= values
        path.write_text(json.dumps(record), encoding="utf-8")

    start = {"origin": origin, "licence": "apache-2.0", "files": {"small/model.safetensors": ""}}
    sources = read_json(RUN / "data/manifest.json")["settings"]["data"]["sources"]
    change("data", "data", sources=[*sources, start])
    assert model_facts(RUN).base_model is None
    change("pretrain/baseline", "pretrain", start_from="small")
    assert model_facts(RUN).base_model == (f"google-t5/{model}" if model else None)


def test_the_card_quotes_corpus_scores_spread_and_hashes(checkout: Path) -> None:
    publish(RUN, folder=Path("out"))
    text = card_of("out")[1]
    for line in (
        "# r-baseline",
        "| en | 1,173 | 23,662 | 36 |",
        "| 1 | https://huggingface.co/datasets/owner/crawl/resolve/main/0.wet | odc-by |",
        "| 1 | written \\| by &lt;hand> | CC0 |",  # the unused file of this origin is not counted
        "| one | 96 | 1,600 |",
        "| finetune | 100 | 16 | 0.5000 | – |",
        "| one | accuracy | 62.50 | – | 56.25 ±8.84 | 62.50 majority | 11 | 2 |",
        "- The model was trained to answer inputs of: one.",
        "- The run contains no evaluation of any use but the scores above.",
        "- Scored rows: one (11), origin: written \\| by &lt;hand>. The name of a task is that "
        "of its format: these are results of a benchmark only if its rows were scored.",
        "- No better than the trivial baseline: one (accuracy).",
        f"| commit of the code | `{'c0ffee' + '0' * 34}` |",
        f"| `{VOCABULARY.as_posix()}` | `{sha256_of(VOCABULARY)}` |",
        f"| model.safetensors | `{sha256_of(Path('out/model.safetensors'))}` |",
    ):
        assert line in text.splitlines()


def test_the_command_in_the_card_finds_the_weights(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(RUN, folder=Path("out"))
    lines = card_of("out")[1].splitlines()
    (command,) = (line for line in lines if line.startswith("t5repro trace "))
    main(command.split()[1:])
    assert f"{RUN.as_posix()}/finetune/baseline/weights.safetensors" in capsys.readouterr().out


def test_without_a_licence_the_card_says_so_and_the_metadata_have_none(checkout: Path) -> None:
    publish(RUN, folder=Path("out"))
    metadata, text = card_of("out")
    assert "license" not in metadata
    assert "- No licence of the weights was stated;" in text


def test_the_same_run_gives_the_same_bytes_in_another_folder(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(RUN, folder=Path("out"))
    shutil.copytree(checkout, checkout.parent / "elsewhere", ignore=shutil.ignore_patterns("out"))
    monkeypatch.chdir(checkout.parent / "elsewhere")
    publish(RUN, folder=Path("another"))
    for name in FILES:
        assert Path("another", name).read_bytes() == (checkout / "out" / name).read_bytes()


def test_an_export_of_a_run_is_one_of_its_weights_and_its_vocabulary(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = []
    monkeypatch.setattr("t5repro.engines.devices.prepare", lambda devices: None)  # TensorFlow runs
    monkeypatch.setattr(
        "t5repro.publish.weights.export_weights",
        lambda weights, **options: exported.append((weights, options["vocabulary"])),
    )
    words = ["weights", "export", str(RUN), "--form=huggingface", "--folder=out"]
    for stage in ("finetune", "pretrain"):
        assert main([*words, "--experiment", "baseline", "--stage", stage]) == 0
    assert [(weights.resolve(), vocabulary.resolve()) for weights, vocabulary in exported] == [
        (checkout / RUN / stage / "baseline/manifest.json", checkout / VOCABULARY)
        for stage in ("finetune", "pretrain")
    ]


def test_a_served_model_has_the_settings_of_the_runs_predictions(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: dict[str, Any] = {}
    monkeypatch.setattr("t5repro.engines.devices.prepare", lambda devices: None)  # TensorFlow runs
    monkeypatch.setattr(
        "t5repro.publish.saved_model.export_server",
        lambda settings, **files: served.update(files, settings=settings),
    )
    assert main(["weights", "saved-model", str(RUN), "--folder=out"]) == 0
    recorded = read_json(RUN / "evaluate_predict/baseline/manifest.json")["settings"]
    assert served["settings"].evaluate.inputs_length == recorded["evaluate"]["inputs_length"]
    assert served["weights"].resolve() == checkout / RUN / "finetune/baseline/manifest.json"
    assert main(["weights", "saved-model", "--weights=m", "--vocabulary=v", "--folder=out"]) == 2


@pytest.mark.parametrize(
    "model", [(), ("results/demo", "--weights=m"), ("--vocabulary=v",), ("--weights=m",)]
)
def test_an_export_of_no_model_or_of_two_is_refused(
    model: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["weights", "export", "--form=huggingface", "--folder=f", *model]) == 2
    assert "name a run, such as results/demo, or a training with" in capsys.readouterr().err


def test_pretrained_weights_have_no_scores_and_an_untrained_model_no_language(
    checkout: Path,
) -> None:
    publish(RUN, folder=Path("first"), stage="pretrain")
    metadata, text = card_of("first")
    assert metadata["language"] == ["en"]
    assert "model-index" not in metadata
    assert "The run has no scores of these weights." in text
    assert "- The run contains no evaluation of these weights." in text
    assert "max_new_tokens" not in read_json(Path("first/generation_config.json"))
    publish(RUN, folder=Path("second"), stage="pretrain", arm="other")
    metadata, text = card_of("second")
    assert "language" not in metadata
    assert "Pre-training text" not in text


def test_without_a_report_the_scores_have_no_spread(checkout: Path) -> None:
    shutil.rmtree(RUN / "report")
    publish(RUN, folder=Path("out"))
    assert "| one | accuracy | 62.50 | – | – | 62.50 majority | 11 | 2 |" in card_of("out")[1]


def test_rows_without_a_recorded_origin_say_so(checkout: Path) -> None:
    shutil.rmtree(RUN / "data")
    publish(RUN, folder=Path("out"))
    metadata, text = card_of("out")
    (result,) = metadata["model-index"][0]["results"]
    assert result["dataset"]["name"] == "one: 11 rows, origin: not recorded"
    assert "- Scored rows: one (11), origin: not recorded." in text


def test_without_a_record_the_commit_is_not_recorded(checkout: Path) -> None:
    shutil.rmtree("records")
    publish(RUN, folder=Path("out"))
    assert "| commit of the code | not recorded |" in card_of("out")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["results/absent"], "results/absent is no run; name its folder, such as results/demo"),
        (["results/r/finetune"], "results/r/finetune is no run"),
        (["results/r", "--experiment", "bassline"], "no arm 'bassline'; nearest: 'baseline'"),
        (["results/r", "--arm", "bassline"], "no arm 'bassline'; nearest: 'baseline'"),
        (["results/r", "--license", " "], "--license is empty"),
    ],
)
def test_a_wrong_request_is_named_and_leaves_no_folder(
    checkout: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["weights", "publish", *words, "--folder", "out"]) != 0
    assert message in capsys.readouterr().err
    assert not list(Path().glob("*out*"))


def test_an_existing_folder_is_never_overwritten(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out").mkdir()
    assert main(["weights", "publish", "results/r", "--folder", "out"]) != 0
    assert "out exists; name a new folder, or remove this one" in capsys.readouterr().err


def test_altered_weights_are_not_published(checkout: Path) -> None:
    weights = RUN / "finetune/baseline/weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(LineageError, match=r"baseline/weights.safetensors was altered"):
        publish(RUN, folder=Path("out"))
    assert not Path("out").exists()


def test_an_arm_without_the_stage_is_named(checkout: Path) -> None:
    shutil.rmtree(RUN / "pretrain")
    with pytest.raises(ArtifactError, match="the arm baseline has no pretrain; leave --stage out"):
        publish(RUN, folder=Path("out"), stage="pretrain")


def test_an_ensemble_is_no_single_model(checkout: Path) -> None:
    path = RUN / "evaluate_predict/baseline/manifest.json"
    values = json.loads(path.read_bytes())
    values["inputs"] += [
        entry
        for entry in read_json(RUN / "evaluate_predict/other/manifest.json")["inputs"]
        if entry["path"].endswith("weights.safetensors")
    ]
    del values["checksum"]
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ArtifactError, match="has 2 model files .* or an arm that is no ensemble"):
        publish(RUN, folder=Path("out"))


def test_the_model_of_a_group_has_the_scores_of_its_tasks(checkout: Path) -> None:
    assert {row.task for row in model_facts(RUN).scores} == {"one", "glue"}
    # The scores of the arm are those of the predictions of this model among others.
    manifest(
        Path(),
        f"{RUN}/evaluate_score/baseline/manifest.json",
        rule="evaluate_score",
        inputs=[f"{RUN}/evaluate_predict/{node}/one.jsonl" for node in ("baseline", "other")],
        outputs=[f"{RUN}/evaluate_score/baseline/scores.json"],
    )
    facts = model_facts(RUN, arm="other")
    assert {(row.arm, row.task, row.value) for row in facts.scores if row.metric == "accuracy"} == {
        ("baseline", "one", 62.5)
    }
    assert {row.task for row in facts.scores} == {"one"}


def test_a_model_with_adapters_is_refused(checkout: Path) -> None:
    from t5repro.model.checkpoints import read_arrays, write_arrays
    from t5repro.publish.weights import export_weights

    path = RUN / "finetune/baseline/weights.safetensors"
    arrays = read_arrays(path)
    arrays["encoder/block_0/adapter/down"] = np.zeros((2, 2), np.float32)
    write_arrays(path, arrays)
    with pytest.raises(
        CheckpointError, match=r"1 weights that other libraries lack.*block_0/adapter/down"
    ):
        export_weights(
            path.with_name("manifest.json"),
            vocabulary=VOCABULARY,
            form="huggingface",
            folder=Path("out"),
        )


def test_a_prefix_is_what_all_rows_share_up_to_a_colon_and_never_the_text_of_one(
    checkout: Path,
) -> None:
    rows = {
        "two": ["sst2 sentence: The day: a", "sst2 sentence: The day is"],
        "single": ["sst2 sentence: The day"],
        "none": ["a b", "a c"],
    }
    outputs = []
    for task, inputs in rows.items():
        path = Path(f"{task}.jsonl")
        write_json_lines(path, [{"inputs": text} for text in inputs])
        outputs.append(Artifact(path.name, sha256_of(path), path.stat().st_size))
    job = Job("r/p/a", "evaluate_predict", "", {}, (), tuple(outputs), {})
    assert shared_prefixes(read_run(Path(), "r"), job) == {"two": "sst2 sentence: "}


def test_the_text_of_pretraining_is_not_that_of_another_experiments_vocabulary() -> None:
    def job(rule: str, node: str, inputs: tuple[Job, ...] = ()) -> Job:
        written = (Artifact(f"r/{rule}/{node}/file", "0", 1),)
        read = tuple(earlier.outputs[0] for earlier in inputs)
        return Job(f"{rule}/{node}", rule, "", {}, read, written, {})

    crawl, own = job("c4", "baseline"), job("c4", "own")
    vocabulary = job("vocab", "baseline", (crawl,))
    for jobs in ((crawl, own), (own, crawl)):
        run = Run("r", Path(), (*jobs, vocabulary, job("tokens", "own", (vocabulary, own))))
        assert pretraining_corpus(run) is own
    assert pretraining_corpus(Run("r", Path(), (crawl, vocabulary))) is None


def test_a_decoder_without_an_encoder_is_refused(checkout: Path, monkeypatch: Any) -> None:
    facts = model_facts(RUN, arm="", stage="")
    model = {**facts.training.settings["model"], "architecture": "language_model"}
    training = replace(facts.training, settings={**facts.training.settings, "model": model})
    monkeypatch.setattr(
        "t5repro.hub.publish.model_facts", lambda *_, **__: replace(facts, training=training)
    )
    with pytest.raises(CheckpointError, match="'language_model'; the card describes an encoder"):
        publish(RUN, folder=Path("out"))
    assert not Path("out").exists()


def test_a_signature_is_written_after_the_card_and_others_verify_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("model_signing", reason="no extra signing here: make signing")
    key, public = tmp_path / "model.pem", tmp_path / "model.pub"
    curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run(["openssl", "genpkey", *curve, "-out", key], check=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    monkeypatch.setenv("T5REPRO_MODEL_KEY", str(key))
    assert main(["weights", "publish", str(RUN), "--folder", "out", "--sign"]) == 0
    assert {path.name for path in Path("out").iterdir()} == {*FILES, "model.sig"}
    assert main(["weights", "verify", "out", "--public-key", str(public)]) == 0
    assert f"out: 7 files as {public} signed them" in capsys.readouterr().out
    # The library's own command.
    command = [Path(sys.executable).with_name("model_signing"), "verify", "key", "out"]
    options = ["--signature", "out/model.sig", "--public_key", public]
    checked = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout.strip()) == (0, "Verification succeeded")
    with Path("out/README.md").open("a") as card:
        card.write("More praise.")
    assert main(["weights", "verify", "out", "--public-key", str(public)]) == 1
    assert "out: not as model.sig says: README.md was altered" in capsys.readouterr().err
    monkeypatch.delenv("T5REPRO_MODEL_KEY")
    assert main(["weights", "publish", str(RUN), "--folder", "other", "--sign"]) == 2
    assert "--sign needs T5REPRO_MODEL_KEY" in capsys.readouterr().err
    assert not Path("other").exists()
