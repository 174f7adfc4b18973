"""The cost of a run, from records and Snakemake's measurements."""

import json
from pathlib import Path

import pytest

from t5repro.cli.main import main
from t5repro.errors import ArtifactError
from t5repro.report.cost import cost_page, job_costs, stage_costs

MACHINE = {"processor": "AMD EPYC", "processors": 2, "system": "Linux x86_64"}


def job(root: Path, name: str, seconds: float, measured: str = "", machine=MACHINE) -> None:
    path = root / f"records/{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"start": {"machine": machine}, "end": {"seconds": seconds}}))
    if measured:
        log = root / f"logs/{name}.tsv"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"s\tmax_rss\tcpu_time\n{measured}\n")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    job(tmp_path, "r/pretrain/a", 60.5, "61\t1000.4\t48.25")
    job(tmp_path, "r/pretrain/b", 1000, "9\t1200.6\t2.5")
    job(tmp_path, "r/c4_clean/a/00000", 2.0, "2\tNA\tNA")
    job(tmp_path, "other/c4/a", 5.0)
    return tmp_path / "results/r"


def test_a_stage_costs_the_sum_of_its_jobs_and_the_largest_memory(run: Path) -> None:
    stages = {stage.rule: stage for stage in stage_costs(job_costs(run))}
    assert list(stages) == ["c4_clean", "pretrain", "total"]
    pretrain = stages["pretrain"]
    assert (pretrain.jobs, pretrain.seconds) == (2, "1,060.5")
    assert (pretrain.cpu_seconds, pretrain.megabytes) == ("50.8", "1,201")
    assert pretrain.machines == "2 × AMD EPYC, Linux x86_64"
    assert stages["total"].seconds == "1,062.5"


def test_a_measurement_that_is_missing_is_unknown_and_not_zero(run: Path) -> None:
    stages = {stage.rule: stage for stage in stage_costs(job_costs(run))}
    assert (stages["c4_clean"].cpu_seconds, stages["c4_clean"].megabytes) == ("–", "–")
    assert stages["total"].cpu_seconds == "–"
    assert stages["total"].megabytes == "1,201"


@pytest.mark.parametrize(
    "record",
    [
        {"start": [], "end": "x"},
        {"start": {"machine": "m"}, "end": {"seconds": "nan"}},
        {"start": {"machine": []}, "end": {"seconds": 10**400}},
        {"end": {"seconds": float("inf")}},
    ],
)
def test_a_malformed_part_of_a_record_is_unknown(tmp_path: Path, record: dict) -> None:
    path = tmp_path / "records/r/c4/a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))
    (stage, total) = stage_costs(job_costs(tmp_path / "results/r"))
    assert (stage.seconds, stage.machines) == ("–", "not recorded")
    assert total.seconds == "–"


@pytest.mark.parametrize("path", ["/", ".", "/results"])
def test_a_folder_that_is_no_run_is_refused(path: str) -> None:
    with pytest.raises(ArtifactError, match=r"is no folder of a run; allowed: results/<run>"):
        job_costs(Path(path))


def test_a_run_without_records_says_so(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"results/r has no records in .*records/r; run it"):
        job_costs(tmp_path / "results/r")


def test_the_command_prints_the_table_and_writes_the_page(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "cost.html"
    assert main(["cost", str(run), "--html", str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "stage",
        "jobs",
        "seconds",
        "CPU",
        "seconds",
        "peak",
        "MB",
        "machine",
    ]
    assert lines[2].split()[:5] == ["pretrain", "2", "1,060.5", "50.8", "1,201"]
    assert '<th scope="row">pretrain</th><td class="number">2</td>' in page.read_text()


def test_markup_in_a_record_is_only_text_of_the_page(tmp_path: Path) -> None:
    machine = {"processor": "<script>x</script>", "processors": 1, "system": "'><img src=x>"}
    job(tmp_path, "r/c4/a", 1.0, machine=machine)
    page = cost_page("<b>", stage_costs(job_costs(tmp_path / "results/r")))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;b&gt;" in page
