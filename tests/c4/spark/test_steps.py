"""The steps on a real standalone cluster, a master and two workers, against the local engine."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.c4 import build
from t5repro.c4.punkt import train_punkt
from t5repro.c4.spark import steps as engine
from t5repro.c4.spark.session import session as open_session
from t5repro.config.load import load_settings
from t5repro.config.sections.c4 import SparkSettings
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.errors import ArtifactError, ClusterError, CorpusError, CrawlError

pyspark = pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("no Java here", allow_module_level=True)

pytestmark = [
    # PySpark leaves the sockets through which results come to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MINI = ROOT / "examples" / "mini"
CRAWL = sorted((MINI / "crawl").iterdir())
BAD_WORDS = {name: MINI / "lists" / f"badwords.{name}.txt" for name in ("en", "de", "fr")}
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE_SECONDS = 120


class Cluster:
    """A master and its workers, each a process group of its own."""

    def __init__(self, folder):
        self._folder = folder
        self._processes = {}
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self._port = taken.getsockname()[1]
        self.master = f"spark://127.0.0.1:{self._port}"

    def start(self):
        self._start("master", "master.Master", "--port", str(self._port))
        for name in ("worker-1", "worker-2"):
            self.start_worker(name)

    def start_worker(self, name):
        options = ("--cores", "2", "--memory", "2g", "--work-dir", str(self._folder / name))
        self._start(name, "worker.Worker", *options, self.master)
        self._wait_for("Successfully registered with master", name)

    def kill(self, name):
        """Kill a process, with the executors it started and their Python."""
        process = self._processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self):
        for name in list(self._processes):
            self.kill(name)

    def _start(self, name, role, *options):
        with (self._folder / f"{name}.log").open("w") as log:
            self._processes[name] = subprocess.Popen(
                [
                    SPARK_CLASS,
                    f"org.apache.spark.deploy.{role}",
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    "0",
                    *options,
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            )
        if name == "master":
            self._wait_for("I have been elected leader", name)

    def _wait_for(self, text, name):
        log = self._folder / f"{name}.log"
        until = time.monotonic() + PATIENCE_SECONDS
        while text not in log.read_text():
            assert time.monotonic() < until, log.read_text()
            assert self._processes[name].poll() is None, log.read_text()
            time.sleep(0.1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start()
        yield started
    finally:
        started.stop()


def spark_settings(cluster):
    return SparkSettings(
        master=cluster.master,
        driver_memory="1g",
        executor_memory="512m",
        conf={"spark.cores.max": "2"},  # leaves two for a driver beside the tests' own
    )


@pytest.fixture(scope="module")
def spark(cluster):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        with open_session(spark_settings(cluster), "tests") as session:
            yield session


def settings_of(recipe="paper", **c4):
    values = {"recipe": recipe, "validation_modulus": 40, "languages": ["en"], **c4}
    return load_settings(
        {
            "c4": values,
            "vocab": {"language_parts": {"en": 1}},
            "tokens": {"languages": values["languages"][:1]},
        }
    )


def stage(rule, settings):
    return stage_model(rule)(**stage_settings(settings, rule))


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)  # recipes are files


def build_corpus(folder, monkeypatch, settings, wet, *, session=None, shards=1, punkt=None):
    """Run the three steps below a folder, with a session or here; return all files made."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    steps, first = (build, ()) if session is None else (engine, (session,))
    lists = {"punkt": punkt or {}, "bad_words": BAD_WORDS}
    cleaned = []
    for number in range(shards):
        cleaned.append(Path(f"clean/{number:05d}.parquet"))
        steps.clean_shard(
            *first,
            stage("c4_clean", settings),
            wet=wet[number::shards],
            **lists,
            output=cleaned[-1],
            manifest=Path(f"clean/{number:05d}.manifest.json"),
        )
    chosen = Path("dedup/decisions.parquet")
    steps.deduplicate(
        *first,
        stage("c4_dedup", settings),
        cleaned=cleaned,
        output=chosen,
        manifest=Path("dedup/manifest.json"),
    )
    steps.write_corpus(
        *first,
        stage("c4", settings),
        cleaned=cleaned,
        decisions=chosen,
        **lists,
        folder=Path("c4"),
        manifest=Path("c4/manifest.json"),
    )
    monkeypatch.chdir(ROOT)
    return files_below(folder)


def files_below(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_same(found, expected):
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []


@pytest.mark.parametrize(
    ("recipe", "shards"), [("paper", 2), pytest.param("tfds", 1, marks=pytest.mark.slow)]
)
def test_the_cluster_makes_the_bytes_of_one_machine(tmp_path, monkeypatch, spark, recipe, shards):
    settings = settings_of(recipe, languages=["en", "de", "fr", "ro"], output_shards=2)
    wet = CRAWL if recipe == "tfds" else CRAWL[:3] + CRAWL[-1:]
    wet = wet[:: 1 if recipe == "tfds" else -1]
    punkt = {}
    if recipe == "paper":  # each page split by what was learned of its language
        settings = settings_of(recipe, languages=["en", "de"], output_shards=2)
        learned = {"folder": tmp_path / "punkt", "manifest": tmp_path / "punkt.json"}
        train_punkt(stage("c4_punkt", settings), wet=wet, **learned)
        punkt = {name: tmp_path / "punkt" / name for name in ("en", "de")}
    expected = build_corpus(
        tmp_path / "here", monkeypatch, settings, wet, shards=shards, punkt=punkt
    )
    found = build_corpus(
        tmp_path / "spark",
        monkeypatch,
        settings,
        wet[::-1] if shards == 1 else wet,
        session=spark,
        shards=shards,
        punkt=punkt,
    )
    assert_same(found, expected)
    counters = json.loads(found["c4/manifest.json"])["counters"]
    assert all(rule["in"] > 0 for rule in counters["rules"])


def hot_pages(wet_record, pages, first):
    """Records of pages that share a line and a span, and each have lines of their own."""
    shared = "This very sentence stands on each and every page of the whole crawl. " * 3
    return [
        wet_record(
            f"http://hot/{number}",
            f"{shared.strip()}\n"
            f"The first thing to be said about house number {number} is that it is old.\n"
            f"The second thing to be said about house number {number} is that it is cold.\n"
            f"The third thing to be said about house number {number} is that it is sold.",
        )
        for number in range(first, first + pages)
    ]


@pytest.mark.parametrize("recipe", ["paper", pytest.param("tfds", marks=pytest.mark.slow)])
def test_text_that_thousands_of_pages_share_stays_once(
    tmp_path, monkeypatch, spark, write_wet, wet_record, recipe
):
    wet = [
        write_wet(hot_pages(wet_record, 1500, first), name=f"crawl/{first}.warc.wet.gz")
        for first in (0, 1500)
    ]
    monkeypatch.setattr(engine, "PIECE_KEY_BYTES", 100_000)  # several pieces a file
    settings = settings_of(recipe)
    expected = build_corpus(tmp_path / "here", monkeypatch, settings, wet)
    found = build_corpus(tmp_path / "spark", monkeypatch, settings, wet, session=spark)
    assert_same(found, expected)
    counters = json.loads(found["dedup/manifest.json"])["counters"]
    assert counters["removed_units"] >= 2999


def clean(session, folder, wet, manifest="m.json", c4=None, **more):
    settings = stage("c4_clean", settings_of(**(c4 or {})))
    engine.clean_shard(
        session,
        settings,
        wet=wet,
        punkt={},
        bad_words={},
        output=folder / "pages.parquet",
        manifest=folder / manifest,
        **more,
    )


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path, monkeypatch, cluster, spark):
    settings = settings_of()
    expected = build_corpus(tmp_path / "here", monkeypatch, settings, CRAWL)
    killed = []

    def kill_when_half_done():
        tracker = spark.sparkContext.statusTracker()
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(info and info.numTasks == 8 and info.numCompletedTasks >= 3 for info in stages):
                cluster.kill("worker-1")
                killed.append(time.monotonic())
                return
            time.sleep(0.02)

    thread = threading.Thread(target=kill_when_half_done)
    thread.start()
    try:
        found = build_corpus(tmp_path / "spark", monkeypatch, settings, CRAWL, session=spark)
        finished = time.monotonic()
    finally:
        thread.join()
        if killed:
            cluster.start_worker("worker-1")
    assert killed, "the cleaning of eight files was over before a worker could be killed"
    assert killed[0] < finished
    assert_same(found, expected)


@pytest.mark.slow
def test_a_driver_killed_in_the_middle_changes_nothing_when_it_is_run_again(
    tmp_path, monkeypatch, cluster
):
    settings = json.dumps(stage_settings(settings_of(), "c4_clean"))
    asked = {"engine": "spark", "spark": spark_settings(cluster).model_dump(mode="json")}
    command = [
        sys.executable,
        "-m",
        "t5repro",
        "c4_clean",
        "--settings",
        settings,
        "--wet",
        *map(str, CRAWL),
        "--output",
        "clean/pages.parquet",
        "--manifest",
        "clean/manifest.json",
        "--log",
        "clean.log",
    ]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT / "src")}
    here, there = tmp_path / "here", tmp_path / "spark"
    here.mkdir()
    there.mkdir()
    subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True)

    command += ["--engine", json.dumps(asked)]
    driver = subprocess.Popen(
        command,
        cwd=there,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    line = ""
    for line in driver.stderr:
        if "c4_clean: 0 tasks (started)" in line:
            break
    assert "started" in line
    time.sleep(2)
    driver.kill()
    driver.communicate()
    assert not (there / "clean" / "manifest.json").exists()
    ran = subprocess.run(
        command, cwd=there, env=environment, check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "(done)" in ran.stderr
    assert "WARN" not in ran.stderr + ran.stdout  # Spark's own words are in the log
    assert "Spark" in (there / "clean.log").read_text()
    assert files_below(there / "clean") == files_below(here / "clean")


# Inputs


def test_listed_files_are_fetched_by_the_workers_and_named_as_listed(tmp_path, spark):
    listed = [Path(f"crawl-data/segment/wet/{path.name}") for path in CRAWL[:2]]
    addresses = {name: str(path) for name, path in zip(listed, CRAWL, strict=False)}
    clean(spark, tmp_path, listed[::-1], addresses=addresses, fetch=shutil.copyfile)
    there = (tmp_path / "pages.parquet").read_bytes()
    found = json.loads((tmp_path / "m.json").read_text())
    build.clean_shard(
        stage("c4_clean", settings_of()),
        wet=CRAWL[:2],
        punkt={},
        bad_words={},
        output=tmp_path / "pages.parquet",
        manifest=tmp_path / "m.json",
        names=dict(zip(CRAWL, map(str, listed), strict=False)),
    )
    assert there == (tmp_path / "pages.parquet").read_bytes()
    assert found == json.loads((tmp_path / "m.json").read_text())
    assert [item["path"] for item in found["inputs"]] == [str(name) for name in listed]


def damaged_crawl(folder):
    """Return a file cut off in the middle, a whole one, and a path where there is none."""
    cut = folder / "cut.warc.wet.gz"
    data = CRAWL[5].read_bytes()
    cut.write_bytes(data[: len(data) // 2])
    return [cut, folder / "none.warc.wet.gz", CRAWL[5]]


def test_damage_is_counted_and_named_as_on_one_machine(tmp_path, spark):
    wet, refused = damaged_crawl(tmp_path), ["../secret.wet.gz"]
    found = tmp_path / "spark"
    clean(spark, found, wet, refused=refused)
    build.clean_shard(
        stage("c4_clean", settings_of()),
        wet=wet,
        punkt={},
        bad_words={},
        refused=refused,
        output=tmp_path / "here" / "pages.parquet",
        manifest=tmp_path / "here" / "m.json",
    )
    manifests = [json.loads((tmp_path / name / "m.json").read_text()) for name in ("spark", "here")]
    assert manifests[0]["counters"] == manifests[1]["counters"]
    assert manifests[0]["inputs"] == manifests[1]["inputs"]
    counts = manifests[0]["counters"]["faults"]["counts"]
    assert counts == {"gzip_cut": 1, "missing_file": 1, "no_url": 1, "outside_folder": 1}
    assert (found / "pages.parquet").read_bytes() == (
        tmp_path / "here" / "pages.parquet"
    ).read_bytes()


def test_a_wet_file_that_is_not_there_stops_the_run_that_asks_for_it(tmp_path, spark):
    with pytest.raises(CrawlError, match="none.wet.gz: .*set c4.on_bad_record to skip"):
        clean(spark, tmp_path, [Path("crawl/none.wet.gz")], c4={"on_bad_record": "fail"})
    assert files_below(tmp_path) == {}


def test_a_shard_without_a_file_and_one_withdrawn_page_are_as_on_one_machine(tmp_path, spark):
    withdrawn = tmp_path / "pages.yaml"
    withdrawn.write_text("urls: {}\ndomains: {hill-and-dale.example: asked}\n")
    for wet in ([], CRAWL[:1]):
        clean(spark, tmp_path, wet, withdrawn=withdrawn)
        found = files_below(tmp_path)
        build.clean_shard(
            stage("c4_clean", settings_of()),
            wet=wet,
            punkt={},
            bad_words={},
            output=tmp_path / "pages.parquet",
            manifest=tmp_path / "m.json",
            withdrawn=withdrawn,
        )
        assert_same(files_below(tmp_path), found)
    assert json.loads(found["m.json"])["counters"]["read"]["withdrawn"] > 0


def test_a_language_without_a_page_stops_before_a_file_is_written(tmp_path, monkeypatch, spark):
    with pytest.raises(CorpusError, match="c4.languages asks for 'ja', but no page of the crawl"):
        build_corpus(
            tmp_path, monkeypatch, settings_of(languages=["en", "ja"]), CRAWL[5:6], session=spark
        )
    assert not list((tmp_path / "c4").glob("**/*.parquet"))
    assert not list((tmp_path / "c4").glob(".writing-*"))


def test_a_cleaned_file_without_keys_of_the_unit_is_refused(tmp_path, monkeypatch, spark):
    clean(spark, tmp_path, CRAWL[5:6], c4={"recipe": "tfds"})
    settings = stage("c4_dedup", settings_of("paper"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="pages.parquet has no keys of c4.dedup.unit 'three_"):
        engine.deduplicate(
            spark,
            settings,
            cleaned=[Path("pages.parquet")],
            output=Path("d.parquet"),
            manifest=Path("d.json"),
        )
    assert not Path("d.parquet").exists()


def test_a_listed_path_that_leaves_the_folder_is_refused_before_the_cluster_works(tmp_path, spark):
    with pytest.raises(CrawlError, match="names '../secret.wet.gz', which leaves c4.crawl_prefix"):
        clean(
            spark, tmp_path, CRAWL[5:6], c4={"on_bad_record": "fail"}, refused=["../secret.wet.gz"]
        )
    assert files_below(tmp_path) == {}


# Starting


def start(**settings):
    with open_session(SparkSettings(**settings), "tests"):
        raise AssertionError("a session began")


def test_without_java_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ClusterError, match="needs Java 17: there is no java on the PATH; install"):
        start(master="local[1]")


def test_a_java_that_is_too_old_or_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match="JAVA_HOME .* has no bin/java"):
        start(master="local[1]")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    with pytest.raises(ClusterError, match="or later: .*bin/java is 11; install"):
        start(master="local[1]")


def test_without_pyspark_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(
        ClusterError, match=r"is not installed here; pip install 't5repro\[spark\]'"
    ):
        start(master="local[1]")


@pytest.mark.parametrize("master", ["spark://127.0.0.1:1", "spark://127.0.0.1:none"])
def test_a_master_that_does_not_answer_is_named_at_once(master):
    with pytest.raises(ClusterError, match=f"c4.spark.master '{master}' does not answer; start it"):
        start(master=master)
