"""The cost of a run, from records and Snakemake's measurements."""

import json
from pathlib import Path

import pytest
import whole_records
from whole_records import whole_record

from t5repro.cli.main import main
from t5repro.errors import ArtifactError
from t5repro.report.cost import cost_page, job_costs, stage_costs

MACHINE = {**whole_records.MACHINE, "processor": "AMD EPYC"}


def job(
    root: Path, name: str, seconds: float, measured: str = "", machine=MACHINE, **end: float
) -> None:
    path = root / f"records/{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(whole_record(name, {"machine": machine}, {"seconds": seconds, **end}))
    )
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


def test_processor_time_is_the_larger_one_of_record_and_last_measurement(tmp_path: Path) -> None:
    job(tmp_path, "r/pretrain/a", 60.5, "61\t1000.4\t48.25", cpu_seconds=59.5)
    job(tmp_path, "r/c4/a", 60.5, "61\t1000.4\t48.25", cpu_seconds=2.5)  # its children go on
    job(tmp_path, "r/vocab/a", 60.5, cpu_seconds=59.5)  # in a clone without measurements
    seconds = {cost.rule: cost.cpu_seconds for cost in job_costs(tmp_path / "results/r")}
    assert seconds == {"pretrain": 59.5, "c4": 48.25, "vocab": 59.5}


def test_the_time_of_a_job_without_an_end_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "records/r/c4/a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**whole_record("r/c4/a"), "end": None}))
    (stage, total) = stage_costs(job_costs(tmp_path / "results/r"))
    assert (stage.seconds, total.seconds) == ("–", "–")


def test_a_file_that_is_no_record_costs_nothing(tmp_path: Path) -> None:
    job(tmp_path, "r/pretrain/a", 60.5)
    (tmp_path / "records/r/pretrain/b.json").write_text('{"end": {"seconds": 10}}')
    assert [stage.jobs for stage in stage_costs(job_costs(tmp_path / "results/r"))] == [1, 1]


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
    texts = {"processor": "<script>x</script>", "processors": 1, "system": "'><img src=x>"}
    machine = {**MACHINE, **texts}
    job(tmp_path, "r/c4/a", 1.0, machine=machine)
    page = cost_page("<b>", stage_costs(job_costs(tmp_path / "results/r")))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;b&gt;" in page
