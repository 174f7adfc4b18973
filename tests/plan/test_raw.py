"""Raw files that the settings name must be listed, and what is said if they are not."""

import subprocess
import sys

import pytest

from t5repro.config.experiments import settings_by_name
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.errors import RawDataError, SettingsError
from t5repro.plan.run_plan import RunPlan


def run_of(*files: str, **sections: object) -> RunPlan:
    """Return the plan of a run without tasks that trains nothing but its corpus and model."""
    entry = {"origin": "x", "licence": "none", "files": dict.fromkeys(files, "")}
    values = {
        "data": {"sources": [entry]},
        "c4": {"bad_word_lists": {}, "punkt_training": False, **sections.pop("c4", {})},  # type: ignore[dict-item]
        "experiments": [{"name": "a"}],
        **sections,
    }
    return RunPlan(load_settings(values))


CRAWL = ("crawl/0.wet", "crawl/1.wet", "crawl/2.wet")


def test_the_crawl_is_divided_between_the_jobs() -> None:
    plan = run_of(*CRAWL, c4={"clean_shards": 2, "crawl": ["crawl/*"]})
    wet = [job.inputs["wet"] for job in plan.jobs("c4_clean", "a")]
    assert wet == [["data/crawl/0.wet", "data/crawl/2.wet"], ["data/crawl/1.wet"]]


def test_a_withdrawn_file_leaves_its_place_empty() -> None:
    whole = run_of(*CRAWL, c4={"clean_shards": 2, "crawl": ["crawl/*"]})
    rest = run_of(*CRAWL[1:], c4={"clean_shards": 2, "crawl": ["crawl/*"]})
    plan = RunPlan(rest.settings, lambda: whole.settings)
    wet = [job.inputs["wet"] for job in plan.jobs("c4_clean", "a")]
    assert wet == [["data/crawl/2.wet"], ["data/crawl/1.wet"]]


PAIRS = [f"crawl/{number}.warc.{kind}.gz" for number in range(3) for kind in ("wet", "wat")]
WITH_WAT = {"clean_shards": 2, "crawl": ["crawl/*"], "signals": {"source": "wat"}}


def test_a_job_reads_the_wat_file_beside_each_of_its_wet_files() -> None:
    plan = run_of(*PAIRS, c4={**WITH_WAT, "punkt_training": True, "punkt_sample_files": 2})
    jobs = [job.inputs for job in plan.jobs("c4_clean", "a")]
    assert [job["wet"] for job in jobs] == [
        ["data/crawl/0.warc.wet.gz", "data/crawl/2.warc.wet.gz"],
        ["data/crawl/1.warc.wet.gz"],
    ]
    assert [[name.replace(".wat", ".wet") for name in job["wat"]] for job in jobs] == [
        job["wet"] for job in jobs
    ]
    (punkt,) = plan.jobs("c4_punkt", "a")
    assert punkt.inputs["wat"] == ["data/crawl/0.warc.wat.gz", "data/crawl/1.warc.wat.gz"]
    # Beside their WET files they are no WET files, whatever is read of them.
    plain = run_of(*PAIRS, c4={**WITH_WAT, "signals": {}})
    assert [job.inputs["wat"] for job in plain.jobs("c4_clean", "a")] == [[], []]
    assert [job.inputs["wet"] for job in plain.jobs("c4_clean", "a")] == [j["wet"] for j in jobs]


def test_a_withdrawn_wet_file_takes_its_wat_file_out_of_the_job() -> None:
    whole, rest = run_of(*PAIRS, c4=WITH_WAT), run_of(*PAIRS[1:], c4=WITH_WAT)
    plan = RunPlan(rest.settings, lambda: whole.settings)
    assert [job.inputs["wat"] for job in plan.jobs("c4_clean", "a")] == [
        ["data/crawl/2.warc.wat.gz"],
        ["data/crawl/1.warc.wat.gz"],
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (PAIRS[:-1], "data.sources does not list 'crawl/2.warc.wat.gz', the WAT file of a WET"),
        (("crawl/1.gz", "crawl/2.gz"), "the name of a WAT file is made from that of its WET file"),
    ],
)
def test_an_absent_wat_file_is_an_error_before_the_run(files: list[str], message: str) -> None:
    plan = run_of(*files, c4=WITH_WAT)
    with pytest.raises((SettingsError, RawDataError), match=message):
        plan.jobs("c4_clean", "a")


@pytest.mark.parametrize(
    ("c4", "message"),
    [
        ({"clean_shards": 9}, r"c4.clean_shards is 9, but c4.crawl \['crawl/\*'\] matches 3 files"),
        ({"crawl_paths": "wet.paths"}, "c4.crawl_paths names 'wet.paths', which data.sources does"),
        ({"bad_word_lists": {"en": "b"}}, "c4.bad_word_lists.en names 'b', which data.sources"),
        ({"punkt_parameters": {"en": "p"}}, "c4.punkt_parameters.en names 'p/"),
        ({"select": {"urls": "u"}}, "c4.select.urls names 'u', which data.sources does not list"),
    ],
)
def test_a_file_that_is_not_listed_is_named_with_its_setting(
    c4: dict[str, object], message: str
) -> None:
    plan = run_of(*CRAWL, c4=c4)
    with pytest.raises(SettingsError, match=message):
        plan.jobs("c4_clean", "a")


def test_own_text_is_read_only_if_the_settings_name_it() -> None:
    with pytest.raises(SettingsError, match="corpus.files is empty: this run makes its corpus"):
        run_of(*CRAWL).inputs("corpus", "a")


def test_experiments_that_divide_cleaned_files_differently_are_refused() -> None:
    changes = [{"name": "a"}, {"name": "b", "change": {"c4.clean_parts": 2}}]
    with pytest.raises(SettingsError, match="clean_parts is 1, but 2 in the experiment 'b'"):
        run_of(*CRAWL, experiments=changes).forms("c4_dedup")


def test_the_plan_takes_the_settings_of_experiments_from_loading(demo: Settings) -> None:
    """To validate them again would take most of its time."""
    loaded = settings_by_name(demo)
    plan = RunPlan(demo)
    assert all(plan.settings_at(name) is loaded(name) for name in plan.experiments)


def test_a_plan_needs_no_snakemake() -> None:
    code = "import sys, t5repro.plan.run_plan; print('snakemake' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
