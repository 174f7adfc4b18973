"""A small run in the formats of the contract: two experiments, twelve tasks, one corpus."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t5repro.config.schema import Experiment, ReportStage, Settings
from t5repro.jobs.report import ReportJob
from t5repro.report.comparability import PAPER_PAGES
from t5repro.report.experiments import Experiment as ReportExperiment
from t5repro.report.page import write_report
from t5repro.report.rows import ScoreRow, score_rows

HOSTILE = '<script>alert("x")</script><img src=http://evil.example/a.png>'


def entry(kind: str, examples: int, invalid: int, **metrics: tuple[float | None, float]) -> Any:
    """Return a task's scores: metric -> (score, score of the trivial answer)."""
    names = list(metrics)
    value, trivial = metrics[names[0]]
    return {
        "metrics": {name: pair[0] for name, pair in metrics.items()},
        "primary_metric": names[0],
        "baseline": {"kind": kind, "metrics": {name: pair[1] for name, pair in metrics.items()}},
        "beats_baseline": None if value is None else value > trivial,
        "examples": examples,
        "invalid": invalid,
        "signature": None,
    }


def scores_of(shift: float) -> dict[str, Any]:
    """Return the content of a scores.json whose numbers are all lower by `shift`."""
    tasks = {
        "cnn_dailymail": entry(
            "copy",
            40,
            0,
            rouge1=(31.25 - shift, 28.5),
            rouge2=(11.5, 12.25),
            rougeLsum=(27.0, 24.0),
        ),
        "glue_cola": entry("majority", 96, 1, matthews_corrcoef=(-3.5 + shift, 0.0)),
        "glue_mrpc": entry("majority", 80, 0, f1=(81.125 - shift, 79.5), accuracy=(71.25, 66.0)),
        "glue_rte": entry("majority", 64, 2, accuracy=(59.375, 53.125)),
        "glue_sst2": entry("majority", 120, 0, accuracy=(91.66666666666667 - shift, 50.83)),
        "glue_stsb": entry(
            "majority", 72, 4, pearson_corrcoef=(41.5 - shift, 0.0), spearman_corrcoef=(39.0, 0.0)
        ),
        "squad": entry("copy", 60, 0, em=(23.333333333333332 - shift, 0.0), f1=(41.2, 7.75)),
        "super_glue_boolq": entry("majority", 64, 0, accuracy=(62.5 - shift, 62.5)),
        "super_glue_copa": entry("majority", 40, 0, accuracy=(None, 55.0)),
        "wmt_en_de": entry("copy", 80, 0, bleu=(14.125 - shift, 3.5)),
        "wmt_en_fr": entry("copy", 80, 0, bleu=(17.875 - shift, 4.25)),
        "wmt_en_ro": entry("copy", 80, 0, bleu=(9.625 - shift, 3.0)),
    }
    outcomes = [task["beats_baseline"] for task in tasks.values()]
    return {
        "tasks": tasks,
        "averages": {
            "glue": {"value": None, "missing": ["glue_qqp", "glue_qnli"]},
            "super_glue": {"value": None, "missing": ["super_glue_cb", "super_glue_wic"]},
        },
        "beats_baseline": {
            "beaten": outcomes.count(True),
            "of": len(outcomes) - outcomes.count(None),
        },
    }


def alone(*names: str) -> list[ReportExperiment]:
    """Return experiments of one arm each."""
    return [ReportExperiment(name=name, arms=(name,), seeds=(0,)) for name in names]


def seeds_of(*shifts: float) -> tuple[list[ReportExperiment], dict[str, Any]]:
    """Return one experiment with a seed per shift, and the scores of its arms."""
    arms = tuple(f"arm_{number}" for number in range(len(shifts)))
    experiment = ReportExperiment(
        name=arms[0], arms=arms, seeds=tuple(range(len(shifts))), row="Baseline average"
    )
    return [experiment], {arm: scores_of(shift) for arm, shift in zip(arms, shifts, strict=True)}


def rule(name: str, unit: str, came_in: int, **dropped: int) -> dict[str, Any]:
    """Return the counts of one step of the corpus."""
    kept = came_in - sum(dropped.values())
    return {"rule": name, "unit": unit, "in": came_in, "dropped": dropped, "kept": kept}


CORPUS: dict[str, Any] = {
    "rule": "c4",
    "counters": {
        "rules": [
            rule("read", "pages", 1010, no_url=2, too_long=4),
            rule("newest_of_url", "pages", 1004, duplicate_url=20),
            rule(
                "clean_lines",
                "lines",
                21030,
                no_terminal_punctuation=9120,
                few_words=2210,
                javascript=301,
            ),
            rule("clean_pages", "pages", 984, few_sentences=210, curly_bracket=44, lorem_ipsum=12),
            rule("dedup_text", "three-sentence spans", 6200, repeated_text=640),
            rule("dedup_pages", "pages", 718, nothing_left=8, few_sentences_left=25),
            rule("language", "pages", 685, language_not_wanted=21, language_unsure=10),
            rule("bad_words", "pages", 654, bad_word=31),
        ],
        "languages": {
            name: {
                "detected_pages": pages + bad,
                "pages_with_bad_words": bad,
                "rules": [rule("language", "pages", pages + bad + 1, language_uncertain=1)],
                "train_pages": pages - 3,
                "train_characters": pages * 1900,
                "validation_pages": 3,
                "validation_characters": 5100,
            }
            for name, pages, bad in (("en", 343, 28), ("de", 94, 2), ("fr", 93, 1), ("ro", 93, 0))
        },
        "other_languages": {"es": 9, "it": 12},
        "detector": "test",
        "faults": {
            "counts": {"invalid_utf8": 1},
            "named": [{"file": "a.warc", "detail": f"{HOSTILE} \u202e\x00"}],
        },
        "samples": {
            "javascript": [{"text": HOSTILE, "url": "http://evil.example/?a=<b>"}],
            "bad_word": [
                {"text": "evil \u202etxt.exe \x00\ud800 " + "x" * 400, "url": "a.example"}
            ],
            "curly_bracket": [{"text": "function () { return 1 }", "url": ""}],
        },
    },
}


def run_settings(**change: Any) -> Settings:
    """Return settings of a small run with two experiments."""
    tree = Settings().model_dump(mode="json")
    tree["run"]["name"] = "demo"
    tree["model"] |= {"d_model": 64, "num_encoder_layers": 2, "num_decoder_layers": 2}
    tree["pretrain"]["steps"] = 300
    tree["finetune"]["steps"] = 400
    tree["experiments"] = [
        Experiment(name="baseline", row="Baseline average").model_dump(),
        Experiment(
            name="no_pretraining", row="No pre-training", change={"pretrain.steps": 0}
        ).model_dump(),
    ]
    tree["data"]["sources"] = [
        {"origin": "written for this project", "licence": "CC0", "files": {"crawl/a.warc": ""}}
    ]
    tree["data"]["source"] = "/home/somebody/data"
    return Settings.model_validate(tree | change)


def history(steps: int, start: float) -> str:
    """Return a falling loss as a history file."""
    rows = [
        f"{step},{start * (0.35 + 0.65 * 0.985**step) + step * 7 % 5 / 40:.6f},0.01,{step * 999}"
        for step in range(1, steps + 1, 4)
    ]
    return "\n".join(["step,loss,learning_rate,tokens", *(rows if steps else [])]) + "\n"


class Run:
    """The input files of a report below a folder, and the report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = run_settings()
        self.scores = {"baseline": scores_of(0.0), "no_pretraining": scores_of(4.125)}
        self.corpus = CORPUS
        self.trained: dict[str, Any] = {}  # counters of every pre-training
        self.histories = {
            "baseline": {"pretrain": history(300, 6.4), "finetune": history(400, 2.5)},
            "no_pretraining": {"pretrain": history(0, 0.0), "finetune": history(400, 3.4)},
        }

    def at_paper_scale(self) -> "Run":
        """Give the run the paper's model, data and steps, so that scores are compared."""
        paper = Settings()
        kept = {name: getattr(paper, name) for name in ("model", "pretrain", "finetune")}
        self.settings = self.settings.model_copy(update=kept)
        rules = [*CORPUS["counters"]["rules"], rule("last", "pages", PAPER_PAGES)]
        self.corpus = {**CORPUS, "counters": {**CORPUS["counters"], "rules": rules}}
        return self

    def write(self) -> "Run":
        """Write inputs and report; the paths are relative to the current folder."""
        self.html, self.csv = Path("report/report.html"), Path("report/scores.csv")
        self.manifest = Path("report/manifest.json")
        score_files, history_files, corpus_files = {}, {}, {}
        for name in self.scores:
            score_files[name] = _put(f"score/{name}/scores.json", json.dumps(self.scores[name]))
            answers = [
                _put(f"evaluate_predict/{name}/{task}.jsonl", "{}\n")
                for task in self.scores[name]["tasks"]
                if "<" not in task
            ]
            _put(
                f"score/{name}/manifest.json",
                json.dumps({"inputs": [{"path": path.as_posix()} for path in answers]}),
            )
            _put(f"pretrain/{name}/manifest.json", json.dumps({"counters": self.trained}))
            history_files[name] = {
                phase: _put(f"{phase}/{name}/history.csv", text)
                for phase, text in self.histories[name].items()
            }
            if self.corpus:
                corpus_files[name] = _put("c4/manifest.json", json.dumps(self.corpus))
        write_report(
            ReportJob(
                ReportStage(settings=self.settings),
                scores=score_files,
                pretrain_history={name: files["pretrain"] for name, files in history_files.items()},
                finetune_history={
                    name + phase.removeprefix("finetune"): path
                    for name, files in history_files.items()
                    for phase, path in files.items()
                    if phase != "pretrain"
                },
                corpus=corpus_files,
                html=self.html,
                csv=self.csv,
                manifest=self.manifest,
                metrics={name: Path(f"report/{name}.metrics.json") for name in self.scores},
            )
        )
        self.page = self.html.read_text(encoding="utf-8")
        return self


def _put(path: str, text: str) -> Path:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run whose report is not written yet."""
    monkeypatch.chdir(tmp_path)
    return Run(tmp_path)


@pytest.fixture
def report(run: Run) -> Run:
    """Return a run with its report."""
    return run.write()


@pytest.fixture
def make_scores() -> Callable[[float], dict[str, Any]]:
    """Return the function that makes a scores.json."""
    return scores_of


@pytest.fixture
def make_rows() -> Callable[[dict[str, Any]], list[ScoreRow]]:
    """Return the function that makes the rows of experiments of one arm each."""
    return lambda scores: score_rows(alone(*scores), scores)


@pytest.fixture
def make_seeds() -> Callable[..., tuple[list[ReportExperiment], dict[str, Any]]]:
    """Return the function that makes an experiment of several seeds with its scores."""
    return seeds_of
