"""The graph before anything runs: profiles, plans, refusals."""

import json
import os
import re
import shlex
import time
from pathlib import Path

import pytest
import yaml
from clones import ROOT, run_in, snakemake

pytestmark = pytest.mark.workflow


def test_the_tpu_profile_plans_the_papers_baseline_from_a_fresh_clone(only_planned: Path) -> None:
    ran = snakemake(only_planned, "-n", "--quiet", "rules", profile="tpu")
    assert ran.returncode == 0, ran.stdout
    jobs = dict(line.split()[:2] for line in ran.stdout.splitlines() if len(line.split()) == 2)
    assert jobs["c4_clean"] == "1024"
    assert jobs["pretrain"] == jobs["evaluate_score"] == jobs["report"] == "1"
    # A row of the paper is seven fine-tunings; those of one group have files of other tasks.
    assert jobs["finetune"] == "7"
    assert sum(int(jobs[name]) for name in jobs if name.startswith("evaluate_predict")) == 7


def test_groups_with_kept_checkpoints_are_joined_in_the_scores_and_the_report(fresh: Path) -> None:
    change = {
        "finetune.groups": {
            "glue": {"tasks.names": ["glue_sst2", "glue_rte"]},
            "boolq": {"tasks.names": ["super_glue_boolq"]},
        },
        "finetune.keep_checkpoints": "all",
        "finetune.checkpoint_every_steps": 50,
        "evaluate.checkpoints": "all",
    }
    run_file = fresh / "configs/demo.yaml"
    values = yaml.safe_load(run_file.read_text(encoding="utf-8"))
    values["experiments"] = [{"name": "baseline", "change": change}]
    run_file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    ran = snakemake(fresh, "-n", "-p")
    assert ran.returncode == 0, ran.stdout
    folder = "results/demo/evaluate_predict"
    last = [
        f"{folder}/baseline_glue/glue_sst2.jsonl",
        f"{folder}/baseline_glue/glue_rte.jsonl",
        f"{folder}/baseline_boolq/super_glue_boolq.jsonl",
    ]
    (score,) = re.findall(r"t5repro stage evaluate_score .*", ran.stdout)
    assert re.findall(rf"{folder}/\S+", score) == last
    assert "--kept-steps 50 100 " in score
    (report,) = re.findall(r"t5repro stage report .*", ran.stdout)
    # Answers of earlier checkpoints are in the scores alone.
    assert re.findall(rf"baseline=({folder}/\S+)", report) == last
    histories = {f"baseline_{group}" for group in ("glue", "boolq")}
    assert {*re.findall(r"(\w+)=results/demo/finetune/", report)} == histories


def test_the_report_receives_the_run_and_not_its_first_experiment(fresh: Path) -> None:
    """Else it would show each experiment with the changes of the first one as well."""
    run_file = fresh / "configs/demo.yaml"
    values = yaml.safe_load(run_file.read_text(encoding="utf-8"))
    steps = values["pretrain"]["steps"]
    values["experiments"] = [
        {"name": "short", "change": {"pretrain.steps": steps // 2}},
        {"name": "whole"},
    ]
    run_file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    ran = snakemake(fresh, "-n", "-p")
    assert ran.returncode == 0, ran.stdout
    (report,) = re.findall(r"t5repro stage report .*", ran.stdout)
    received = json.loads(shlex.split(report)[shlex.split(report).index("--settings") + 1])
    assert received["settings"]["pretrain"]["steps"] == steps
    trainings = [shlex.split(line) for line in re.findall(r"t5repro stage pretrain .*", ran.stdout)]
    found = [json.loads(words[words.index("--settings") + 1]) for words in trainings]
    assert sorted(one["pretrain"]["steps"] for one in found) == [steps // 2, steps]


def test_each_profile_names_its_run_file_and_no_default_profile_overrides_it() -> None:
    for name, run_file in (("tpu", "configs/base.yaml"), ("local", "configs/demo.yaml")):
        profile = yaml.safe_load((ROOT / name / "profile.yaml").read_text())
        assert profile["configfile"] == run_file
        assert profile["quiet"] == ["rules", "host"]  # else each job prints its whole settings
    assert not (ROOT / "profiles").exists()
    assert not (ROOT / "default").exists()


@pytest.mark.parametrize(
    ("devices", "threads", "interval", "split"),
    [("intra_op_threads: 3", {"3"}, 0, "train"), ("kind: gpu", {"8"}, 2, "validation")],
)
def test_a_training_takes_its_threads_or_all_cores_and_validation_examples_only_for_samples(
    only_planned: Path, devices: str, threads: set[str], interval: int, split: str
) -> None:
    config = (f"devices={{{devices}}}", f"run={{samples: {{every_steps: {interval}}}}}")
    ran = snakemake(only_planned, "-n", "-p", config=config, cores=8)
    assert ran.returncode == 0, ran.stdout
    rules = r"rule (?:pretrain|finetune|evaluate_predict):\n(?:    .*\n)*?    threads: (\d+)"
    found = re.findall(rules, ran.stdout)
    assert len(found) == 3 * 6
    assert set(found) == threads
    commands = re.findall(r"t5repro stage finetune .*", ran.stdout)
    assert len(commands) == 6
    for command in commands:
        splits = set(re.findall(r"results/demo/tasks/\w+/(\w+)\.jsonl", command))
        assert splits == {"train", split}
        assert f"--sample-every-steps {interval} --sample-count 2" in command


def test_the_validation_of_a_run_file_plans_its_graph(fresh: Path) -> None:
    text = (fresh / "configs/demo.yaml").read_text(encoding="utf-8")
    for shards, message in (
        ("3", "mine.yaml is valid: run demo, experiments baseline, baseline_seed_1"),
        ("99", "c4.clean_shards is 99, but c4.crawl ['crawl/*'] matches 8 files"),
    ):
        changed = text.replace("clean_shards: 4", f"clean_shards: {shards}")
        (fresh / "mine.yaml").write_text(changed, encoding="utf-8")
        ran = run_in(fresh, "t5repro", "config", "validate", "mine.yaml")
        assert message in ran.stdout
        assert (ran.returncode == 0) == ("is valid" in message)


@pytest.mark.parametrize("name", ["withdrawn/pages.yaml", "configs/resolved/code/c4_clean.json"])
def test_an_input_of_the_checkout_with_a_date_in_the_future_is_named_and_a_touch_cures_it(
    fresh: Path, name: str
) -> None:
    path, tomorrow = fresh / name, time.time() + 86_400
    os.utime(path, (tomorrow, tomorrow))
    refused = snakemake(fresh, "-n")
    assert refused.returncode != 0
    assert f"{name} has a date 86," in refused.stdout
    assert f"set it to now: touch {name}" in refused.stdout
    os.utime(path)
    assert snakemake(fresh, "-n").returncode == 0


def test_without_a_run_file_snakemake_says_which_there_are(only_planned: Path) -> None:
    ran = run_in(only_planned, "snakemake", "-n")
    assert ran.returncode != 0
    assert "no run file: use --profile local" in ran.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "finetune={stepz: 3}",
            "--config: unknown setting 'finetune.stepz'; nearest: 'finetune.steps'",
        ),
        ("model={num_heads: 0}", "setting 'model.num_heads' is '0'; Input should be"),
        ("c4={clean_shards: 99}", "c4.clean_shards is 99, but c4.crawl ['crawl/*'] matches"),
        ("data={source: ''}", "raw files are missing:"),
        (
            "experiments=[{name: a}, {name: b, change: {c4: {clean_parts: 2}}}]",
            "c4.clean_parts is 1, but 2 in the experiment 'b'; it must be equal in all",
        ),
    ],
)
def test_an_unknown_or_impossible_setting_stops_snakemake_before_any_job(
    only_planned: Path, change: str, message: str
) -> None:
    ran = snakemake(only_planned, config=(change,))
    assert ran.returncode != 0
    assert message in ran.stdout
    assert not (only_planned / "results").exists()


def test_snakemake_names_the_line_of_the_run_file_that_it_refuses(
    only_planned: Path, tmp_path: Path
) -> None:
    """Of an experiment; tests/config/test_origins.py has the lines of other faults."""
    path = tmp_path / "wrong.yaml"
    path.write_text("experiments:\n- name: a\n- name: b\n  change: {seed: x}\n")
    ran = snakemake(only_planned, "--configfile", str(path))
    assert ran.returncode != 0
    assert "wrong.yaml:4: experiment 'b': setting 'seed' is 'x'" in ran.stdout
    assert not (only_planned / "results").exists()


def test_a_setting_reruns_the_stages_that_read_it_and_no_other(finished: Path) -> None:
    from clones import SMALL

    def changed(section: str, leaf: str) -> str:
        (word,) = (word for word in SMALL if word.startswith(f"{section}="))
        return word.removesuffix("}") + f", {leaf}" + "}"

    def planned(*changes: str) -> set[str]:
        ran = snakemake(finished, "-n", "--quiet", "rules", config=(*SMALL, *changes))
        rows = (line.split() for line in ran.stdout.splitlines())
        return {row[0] for row in rows if len(row) == 2 and row[1].isdigit()} - {"total", "all"}

    last = {"evaluate_predict", "evaluate_score", "report"}
    assert planned() == set()
    assert planned("c4={engine: spark}") == set()  # it makes the same bytes
    assert planned("evaluate={max_decode_length: 9, max_examples: 6}") == last
    assert planned(changed("finetune", "z_loss: 0.5")) == {"finetune"} | last
    assert planned(changed("pretrain", "z_loss: 0.5")) == {"pretrain", "finetune"} | last
    read = {"tokens", "contamination", "pretrain", "finetune"}
    assert planned("tokens={languages: [de]}") == read | last
    assert planned(changed("vocab", "character_coverage: 0.99")) >= {"vocab", "tokens", "pretrain"}
    assert "c4_clean" in planned("c4={dedup: {unit: line}}")
    assert "c4_clean" not in planned("c4={dedup: {min_sentences: 1}}")
