"""The steps on a real standalone cluster, a master and two workers, against the local engine."""

import contextlib
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from c4_rules import build_corpus as build
from c4_rules import clean_job, dedup_job, stage
from checkout import ROOT
from contamination_job import TASK, contamination_job
from made_wat import response, wat_of

from t5repro.c4.clean import clean_shard
from t5repro.c4.punkt import train_punkt
from t5repro.c4.spark import steps as engine
from t5repro.c4.spark.session import session as open_session
from t5repro.config.load import load_settings
from t5repro.config.sections.c4 import SparkSettings
from t5repro.config.stage_settings import stage_settings
from t5repro.contamination.methods import METHODS
from t5repro.contamination.rows_in_corpus import find_contamination, write_found
from t5repro.contamination.spark import search_parts
from t5repro.data.transfer import TransferError
from t5repro.errors import ArtifactError, ClusterError, CorpusError, CrawlError
from t5repro.files import write_manifest
from t5repro.jobs.corpus import PunktJob
from t5repro.lineage.input_hashes import expected_files, verify_inputs

pyspark = pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("no Java here", allow_module_level=True)

pytestmark = [
    # PySpark leaves the sockets through which results come to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MINI = ROOT / "examples/mini/raw"
CRAWL = sorted((MINI / "crawl").iterdir())
BAD_WORDS = {name: MINI / "lists" / f"badwords.{name}.txt" for name in ("en", "de", "fr")}
RECORDS = 80  # of a file of `crawl`
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


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
        while text not in log.read_text():
            assert self._processes[name].poll() is None, log.read_text()
            time.sleep(0.1)


@pytest.fixture(scope="module", autouse=True)
def search_path():
    """Take archives off the path of imports: PySpark leaves them there when it deletes them."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """The first pages of each bundled file, under its name."""
    folder = tmp_path_factory.mktemp("crawl")
    for path in CRAWL:
        data = path.read_bytes()
        is_compressed = path.suffix == ".gz"
        pages = (gzip.decompress(data) if is_compressed else data).split(b"WARC/1.0\r\n")[1:]
        members = [b"WARC/1.0\r\n" + page for page in pages[:RECORDS]]
        if is_compressed:
            members = [gzip.compress(member, mtime=0) for member in members]
        (folder / path.name).write_bytes(b"".join(members))
    return sorted(folder.iterdir())


def spark_settings(cluster, python=""):
    return SparkSettings(
        master=cluster.master,
        python=python,
        driver_memory="1g",
        executor_memory="512m",
        conf={"spark.cores.max": "2"},  # leaves two for a driver beside the tests' own
    )


@pytest.fixture(scope="module")
def spark(cluster, tmp_path_factory):
    """A session; its workers run another program than the driver."""
    python = tmp_path_factory.mktemp("python") / "python"
    python.write_text(f'#!/bin/sh\nPYTHON_OF_WORKERS=1 exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        with open_session(spark_settings(cluster, str(python)), "tests") as session:
            yield session


def test_workers_run_the_python_of_the_settings(spark):
    rows = spark.sparkContext.parallelize([0], 1)
    assert rows.map(lambda _: os.environ.get("PYTHON_OF_WORKERS")).collect() == ["1"]
    assert "PYTHON_OF_WORKERS" not in os.environ


def settings_of(rules="paper", **c4):
    values = {"validation_modulus": 40, "languages": ["en"], **c4}
    return load_settings(
        {
            "use": [f"cleaning/{rules}"],
            "c4": values,
            "vocab": {"language_parts": {"en": 1}},
            "tokens": {"languages": values["languages"][:1]},
        }
    )


def build_corpus(folder, monkeypatch, settings, wet, **options):
    """Run the three rules below a folder, with a session or here; return all files written."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    build(Path("run"), settings, wet, bad_words=BAD_WORDS, **options)
    monkeypatch.chdir(ROOT)
    return files_below(folder / "run")


def files_below(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_same(actual, expected):
    assert sorted(actual) == sorted(expected)
    assert [name for name in expected if actual[name] != expected[name]] == []


@pytest.mark.parametrize(
    ("rules", "shards"), [("paper", 2), pytest.param("tfds", 1, marks=pytest.mark.slow)]
)
def test_the_cluster_makes_the_bytes_of_one_machine(
    tmp_path, monkeypatch, spark, crawl, rules, shards
):
    settings = settings_of(rules, languages=["en", "de", "fr", "ro"], output_shards=2)
    wet = CRAWL if rules == "tfds" else crawl[:3] + crawl[-1:]
    wet = wet[:: 1 if rules == "tfds" else -1]
    punkt = {}
    if rules == "paper":  # each page split by what was learned of its language
        settings = settings_of(rules, languages=["en", "de"], output_shards=2)
        folder, manifest = tmp_path / "punkt", tmp_path / "punkt.json"
        train_punkt(PunktJob(stage("c4_punkt", settings), folder, manifest, wet=wet))
        punkt = {name: tmp_path / "punkt" / name for name in ("en", "de")}
    expected = build_corpus(
        tmp_path / "here", monkeypatch, settings, wet, shards=shards, punkt=punkt
    )
    actual = build_corpus(
        tmp_path / "spark",
        monkeypatch,
        settings,
        wet[::-1] if shards == 1 else wet,
        session=spark,
        shards=shards,
        punkt=punkt,
    )
    assert_same(actual, expected)
    counters = json.loads(actual["c4/manifest.json"])["counters"]
    assert all(rule["in"] > 0 for rule in counters["rules"])


@pytest.mark.parametrize("parts", [3, 5])
def test_the_files_of_one_cleaning_job_are_those_of_one_machine(tmp_path, spark, crawl, parts):
    c4 = {"clean_parts": parts}
    for folder, clean in (("here", clean_shard), ("spark", partial(engine.clean_shard, spark))):
        clean(job_of(tmp_path / folder, crawl[:4], c4))  # of five parts one has no file
    actual, expected = (files_below(tmp_path / name) for name in ("spark", "here"))
    assert sorted(name for name in actual if name.endswith(".parquet")) == [
        f"00000-{part:03d}.parquet" for part in range(parts)
    ]
    for name in expected:
        if name.endswith(".parquet"):
            assert actual[name] == expected[name]
    manifests = [json.loads(files["00000.json"]) for files in (actual, expected)]
    assert manifests[0]["counters"] == manifests[1]["counters"]
    assert manifests[0]["inputs"] == manifests[1]["inputs"]


@pytest.mark.parametrize("source", ["text", "wat"])
def test_signals_of_pages_are_those_of_one_machine(tmp_path, monkeypatch, spark, crawl, source):
    wet, wat, drop = crawl[:4], [], []
    if source == "wat":
        said = [response(headers={"X-Robots-Tag": "noai"}), response(), None]
        wat = wat_of(wet, tmp_path / "wat", lambda url: said[len(url) % 3])
        wat[1].write_bytes(wat[1].read_bytes()[:-30])  # a damaged one
        drop = ["noai", "unknown"]
    settings = settings_of(signals={"source": source, "drop": drop}, clean_parts=5)
    expected, actual = (
        build_corpus(tmp_path / name, monkeypatch, settings, wet, wat=wat, session=session)
        for name, session in (("here", None), ("spark", spark))
    )
    assert_same(actual, expected)
    counters = json.loads(actual["c4/manifest.json"])["counters"]
    # The bundled pages mention no licence: their two counts are zero, on both.
    assert len(counters["signals"]) == (7 if drop else 2)
    dropped = [rule["dropped"] for rule in counters["rules"] if rule["rule"] == "signals"]
    assert [set(names) for names in dropped] == (
        [{"signal_noai", "signal_unknown"}] if drop else []
    )
    cleaned = json.loads(actual["00000.json"])
    assert {path.as_posix() for path in wat} < {file["path"] for file in cleaned["inputs"]}


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


@pytest.mark.parametrize("rules", ["paper", pytest.param("tfds", marks=pytest.mark.slow)])
def test_text_that_thousands_of_pages_share_stays_once(
    tmp_path, monkeypatch, spark, write_wet, wet_record, rules
):
    wet = [
        write_wet(hot_pages(wet_record, 1500, first), name=f"crawl/{first}.warc.wet.gz")
        for first in (0, 1500)
    ]
    monkeypatch.setattr(engine, "PIECE_KEY_BYTES", 100_000)  # several pieces a file
    settings = settings_of(rules)
    expected = build_corpus(tmp_path / "here", monkeypatch, settings, wet)
    actual = build_corpus(tmp_path / "spark", monkeypatch, settings, wet, session=spark)
    assert_same(actual, expected)
    counters = json.loads(actual["decisions/manifest.json"])["counters"]
    assert counters["removed_units"] >= 2999


def job_of(folder, wet, c4=None, **fields):
    return clean_job(folder, settings_of(**(c4 or {})), wet=wet, **fields)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path, monkeypatch, cluster, spark):
    settings = settings_of()
    expected = build_corpus(tmp_path / "here", monkeypatch, settings, CRAWL)
    killed, finished = threading.Event(), threading.Event()

    def kill_when_half_done():
        tracker = spark.sparkContext.statusTracker()
        while not finished.is_set():
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(info and info.numTasks == 8 and info.numCompletedTasks >= 3 for info in stages):
                cluster.kill("worker-1")
                killed.set()
                return
            time.sleep(0.02)

    thread = threading.Thread(target=kill_when_half_done)
    thread.start()
    try:
        actual = build_corpus(tmp_path / "spark", monkeypatch, settings, CRAWL, session=spark)
    finally:
        finished.set()
        thread.join()
        if killed.is_set():
            cluster.start_worker("worker-1")
    assert killed.is_set(), "the cleaning of eight files was over before a worker could be killed"
    assert_same(actual, expected)


@pytest.mark.slow
def test_a_driver_killed_in_the_middle_changes_nothing_when_it_is_run_again(
    tmp_path, monkeypatch, cluster
):
    settings = json.dumps(stage_settings(settings_of(), "c4_clean"))
    spark_engine = {"engine": "spark", "spark": spark_settings(cluster).model_dump(mode="json")}
    command = [
        sys.executable,
        "-m",
        "t5repro",
        "stage",
        "c4_clean",
        "--settings",
        settings,
        "--wet",
        *map(str, CRAWL),
        "--pages",
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

    command += ["--engine", json.dumps(spark_engine)]
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


@contextlib.contextmanager
def pickled_by_value(function):
    from pyspark import cloudpickle

    module = sys.modules[function.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def copy_from_disk(address, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(address.removeprefix("https://here"), path)


def test_listed_files_are_downloaded_by_the_workers_and_named_as_listed(tmp_path, spark, crawl):
    names = [path.relative_to("/").as_posix() for path in crawl[:2]]
    path_list = tmp_path / "wet.paths"
    path_list.write_text("\n".join(names[::-1]))
    c4 = {"crawl_prefix": "https://here/", "clean_shards": 1}
    # The workers have no access to this module, so the function is sent to them by value.
    with pickled_by_value(copy_from_disk):
        job = job_of(tmp_path / "spark", (), c4, path_list=path_list)
        engine.clean_shard(spark, job, fetch=copy_from_disk)
    clean_shard(job_of(tmp_path / "here", crawl[:2], c4))
    downloaded, local = (
        json.loads((tmp_path / name / "00000.json").read_text()) for name in ("spark", "here")
    )
    assert [entry["path"] for entry in downloaded["inputs"]] == names
    assert downloaded["counters"] == local["counters"]
    assert downloaded["outputs"][0]["sha256"] == local["outputs"][0]["sha256"]


def test_a_worker_fetches_the_wat_file_with_its_wet_file(tmp_path, spark, crawl):
    (tmp_path / "wet").mkdir()
    wet = [Path(shutil.copy(path, tmp_path / "wet")) for path in crawl[:2]]
    reserved = response(headers={"TDM-Reservation": "1"})
    wat = wat_of(wet, tmp_path / "wat", lambda url: reserved)
    names = [path.as_posix()[1:] for path in (*wet, *wat)]
    path_list = tmp_path / "wet.paths"
    path_list.write_text("\n".join(names[:2]))
    signals = {"source": "wat", "drop": ["tdm_reserved"]}
    c4 = {"crawl_prefix": "https://here/", "clean_shards": 1, "signals": signals}
    job = job_of(tmp_path / "spark", (), c4, path_list=path_list)
    with pickled_by_value(copy_from_disk):
        engine.clean_shard(spark, job, fetch=copy_from_disk)
    manifest = json.loads(job.manifest.read_text())
    assert [file["path"] for file in manifest["inputs"]] == names
    assert manifest["counters"]["signals"]["tdm_reserved"] > 0
    assert set(manifest["counters"]["cleaned"]) & {"kept", "signal_tdm_reserved"} == {
        "signal_tdm_reserved"
    }


def broken_off_once(address, path):
    """Copy a file in the second attempt; the first leaves a mark and breaks off."""
    mark = Path(f"{address.removeprefix('https://here')}.tried")
    if not mark.exists():
        mark.touch()
        raise TransferError(f"{address} broke off")
    copy_from_disk(address, path)


def always_broken_off(address, path):
    raise TransferError(f"{address} broke off")


def test_a_transfer_that_breaks_off_fails_its_task_which_spark_repeats(tmp_path, spark, crawl):
    names = [shutil.copy(path, tmp_path / path.name).as_posix()[1:] for path in crawl[:2]]
    path_list = tmp_path / "wet.paths"
    path_list.write_text("\n".join(names))
    c4 = {"crawl_prefix": "https://here/", "clean_shards": 1}
    with pickled_by_value(copy_from_disk):
        job = job_of(tmp_path / "spark", (), c4, path_list=path_list)
        engine.clean_shard(spark, job, fetch=broken_off_once)
        manifest = json.loads((tmp_path / "spark/00000.json").read_text())
        assert [entry["path"] for entry in manifest["inputs"]] == names
        with pytest.raises(ClusterError, match="broke off"):
            engine.clean_shard(spark, job, fetch=always_broken_off)


def damaged_crawl(folder, crawl):
    """Return files with damage of several kinds, one of WARC/1.1, and a path without a file."""
    cut, two, plain, newer = (
        folder / f"{name}.warc.wet" for name in ("cut", "two", "plain", "v11")
    )
    data = crawl[5].read_bytes()
    cut.write_bytes(data[: len(data) // 2])
    text = gzip.decompress(crawl[4].read_bytes())
    two.write_bytes(text[:9] + text[9:].replace(b"WARC/1.0\r\n", b"WARC/1.1\r\n", 20))
    newer.write_bytes(text.replace(b"WARC/1.0\r\n", b"WARC/1.1\r\n"))
    plain.write_bytes(text[: len(text) // 2])
    return [cut, folder / "none.warc.wet.gz", two, plain, newer]


def test_damage_is_counted_and_named_as_on_one_machine(tmp_path, spark, crawl):
    wet = damaged_crawl(tmp_path, crawl)
    path_list = tmp_path / "wet.paths"
    path_list.write_text("\n".join(["../secret.wet.gz", *(path.name for path in wet)]))
    c4 = {"crawl_prefix": f"{tmp_path}/", "clean_shards": 1}
    engine.clean_shard(spark, job_of(tmp_path / "spark", (), c4, path_list=path_list))
    clean_shard(job_of(tmp_path / "here", (), c4, path_list=path_list))
    manifests = [
        json.loads((tmp_path / name / "00000.json").read_text()) for name in ("spark", "here")
    ]
    assert manifests[0]["counters"] == manifests[1]["counters"]
    assert manifests[0]["inputs"] == manifests[1]["inputs"]
    counts = manifests[0]["counters"]["faults"]["counts"]
    assert counts == {
        "file_cut": 1,
        "gzip_cut": 1,
        "merged_records": 20,
        "missing_file": 1,
        "outside_folder": 1,
    }
    assert manifests[0]["outputs"][0]["sha256"] == manifests[1]["outputs"][0]["sha256"]


def test_a_missing_wet_file_stops_the_run_that_requires_it(tmp_path, spark):
    job = job_of(tmp_path, [Path("crawl/none.wet.gz")], {"on_bad_record": "fail"})
    with pytest.raises(CrawlError, match="none.wet.gz: .*set c4.on_bad_record to skip"):
        engine.clean_shard(spark, job)
    assert files_below(tmp_path) == {}


def test_a_shard_without_a_file_and_one_withdrawn_page_are_as_on_one_machine(
    tmp_path, spark, crawl
):
    withdrawn = tmp_path / "pages.yaml"
    withdrawn.write_text("urls: {}\ndomains: {hill-and-dale.example: asked}\n")
    for wet in ([], crawl[:1]):
        job = job_of(tmp_path, wet, withdrawn=withdrawn)
        engine.clean_shard(spark, job)
        expected = files_below(tmp_path)
        clean_shard(job)
        assert_same(files_below(tmp_path), expected)
    manifest = job.manifest.read_text()
    assert json.loads(manifest)["counters"]["read"]["withdrawn"] > 0
    assert "hill-and-dale" not in manifest


def test_evaluated_rows_in_the_corpus_are_those_of_one_machine(tmp_path, monkeypatch, spark):
    monkeypatch.chdir(tmp_path)
    job = contamination_job(Path("out"), methods=[method.name for method in METHODS])
    write_found(job, partial(search_parts, spark))
    on_spark = files_below(tmp_path / "out")
    find_contamination(job)
    assert_same(files_below(tmp_path / "out"), on_spark)
    assert len(json.loads(job.found.read_text())["tasks"][TASK]["corpus"]["found"]) > 5


def test_a_language_without_a_page_stops_before_a_file_is_written(
    tmp_path, monkeypatch, spark, crawl
):
    with pytest.raises(CorpusError, match="c4.languages contains 'ja', but no page"):
        build_corpus(
            tmp_path, monkeypatch, settings_of(languages=["en", "ja"]), crawl[5:6], session=spark
        )
    assert not list((tmp_path / "c4").glob("**/*.parquet"))
    assert not list((tmp_path / "c4").glob(".writing-*"))


def test_an_altered_cleaned_file_is_named_by_the_workers_that_would_read_it(tmp_path, spark):
    shard = tmp_path / "0.parquet"
    shard.write_bytes(b"pages")
    write_manifest(
        tmp_path / "0.manifest.json",
        rule="c4_clean",
        settings={},
        inputs=[],
        outputs=[shard],
        counters={},
    )
    hash_files = partial(engine.sha256_of_files, spark)
    verify_inputs(expected_files(shard), hash_files)
    shard.write_bytes(b"qages")
    with pytest.raises(ArtifactError, match=r"0\.parquet has sha256 .*expects"):
        verify_inputs(expected_files(shard), hash_files)


def test_a_cleaned_file_without_keys_of_the_unit_is_refused(tmp_path, spark, crawl):
    job = job_of(tmp_path, crawl[5:6], {"rules": "tfds"})
    engine.clean_shard(spark, job)
    with pytest.raises(ArtifactError, match="00000.parquet has no keys of c4.dedup.unit 'three_"):
        engine.deduplicate(spark, dedup_job(tmp_path, settings_of("paper"), job.pages))
    assert not (tmp_path / "decisions").exists() or not list((tmp_path / "decisions").iterdir())


def test_a_listed_path_that_leaves_the_folder_is_refused_before_the_cluster_works(tmp_path, spark):
    path_list = tmp_path / "wet.paths"
    path_list.write_text("../secret.wet.gz\n")
    c4 = {"on_bad_record": "fail", "clean_shards": 1}
    with pytest.raises(CrawlError, match="names '../secret.wet.gz', which leaves c4.crawl_prefix"):
        engine.clean_shard(spark, job_of(tmp_path / "out", (), c4, path_list=path_list))
    assert not (tmp_path / "out").exists()


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
