"""A Spark session for one rule, and Spark jobs with progress and clear errors.

The workers need Python with the same versions of this project's dependencies as the driver. The
package itself is sent to them as an archive, so they always run the driver's code.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import t5repro
from t5repro import errors
from t5repro.config.sections.c4 import SparkSettings
from t5repro.errors import ClusterError
from t5repro.progress import Progress

MIN_JAVA = 17
CONNECT_SECONDS = 10
POLL_SECONDS = 0.2
DEFAULT_PORT = 7077
LOOPBACK = ("local", "spark://127.0.0.1", "spark://localhost")
TEXT_ROWS = 256  # pages in an Arrow batch between Spark and Python

_JAVA_VERSION = re.compile(r'version "(\d+)')


@contextlib.contextmanager
def session(settings: SparkSettings, step: str) -> Iterator[Any]:
    """Yield a Spark session, which stops when the block ends.

    Args:
        settings: master, and resources of its executors.
        step: name of the rule, shown by the cluster.

    Raises:
        ClusterError: PySpark or Java is missing, or the cluster does not answer.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ClusterError(
            f"c4.engine is 'spark', and {error.name} is not installed here; "
            "pip install 't5repro[spark]', or set c4.engine to local"
        ) from error
    _check_java()
    _check_master(settings.master)
    builder = SparkSession.builder
    for name, value in _conf(settings, step).items():
        builder = builder.config(name, value)
    with (
        _worker_environment(settings.python or sys.executable),
        tempfile.TemporaryDirectory(prefix="t5repro-spark-") as folder,
    ):
        try:
            spark = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            raise ClusterError(
                f"no Spark session on c4.spark.master {settings.master!r}: {_first_line(error)}; "
                "see the log"
            ) from error
        try:
            # Workers run this version of the code, whatever is installed on them.
            spark.sparkContext.addPyFile(str(_archive(Path(folder))))
            yield spark
        finally:
            spark.stop()


def _conf(settings: SparkSettings, step: str) -> dict[str, str]:
    """Return Spark's settings: defaults of this project, overridden by `c4.spark.conf`."""
    conf = {
        "spark.master": settings.master,
        "spark.app.name": f"t5repro {step}",
        "spark.driver.memory": settings.driver_memory,
        "spark.executor.memory": settings.executor_memory,
        "spark.executorEnv.PYTHONHASHSEED": "0",
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # `frames` sets the numbers of tasks, and there are no joins to adapt.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(TEXT_ROWS),
    }
    if settings.packages:
        conf["spark.jars.packages"] = ",".join(settings.packages)
    if settings.master.startswith(LOOPBACK):
        # The name of the machine may resolve to an address that its workers cannot reach.
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
    return conf | settings.conf


@contextlib.contextmanager
def _worker_environment(python: str) -> Iterator[None]:
    """Set what PySpark reads from the environment: the workers' Python, and an equal hash seed.

    ``spark.pyspark.python`` has an effect in ``spark-submit`` only.
    """
    variables = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    variables["PYTHONHASHSEED"] = os.environ.get("PYTHONHASHSEED") or "0"
    previous = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    requirement = f"c4.engine is 'spark', and Spark needs Java {MIN_JAVA}"
    cure = f"install it (apt install openjdk-{MIN_JAVA}-jre-headless), or set c4.engine to local"
    if java is None or not Path(java).is_file():
        cause = f"JAVA_HOME {home!r} has no bin/java" if home else "there is no java on the PATH"
        raise ClusterError(f"{requirement}: {cause}; {cure}")
    result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = _JAVA_VERSION.search(result.stderr + result.stdout)
    if version is None or int(version[1]) < MIN_JAVA:
        raise ClusterError(f"{requirement} or later: {java} is {version and version[1]}; {cure}")


def _check_master(master: str) -> None:
    """Check that a standalone master accepts connections; Spark itself would wait a minute."""
    if not master.startswith("spark://"):
        return
    # A list of masters is tried in order, as Spark does for high availability.
    for address in master.removeprefix("spark://").split(","):
        host, _, port = (
            address.rpartition(":") if ":" in address else (address, "", str(DEFAULT_PORT))
        )
        with contextlib.suppress(OSError, ValueError):
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
            return
    raise ClusterError(
        f"c4.spark.master {master!r} does not answer; start it (docs/run_on_spark.md), "
        "or correct host and port"
    )


def _archive(folder: Path) -> Path:
    """Write the package as a zip archive from which Python can import."""
    root = Path(t5repro.__file__).parent
    path = folder / "t5repro.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for source in sorted(root.rglob("*.py")):
            archive.write(source, source.relative_to(root.parent))
    return path


def collect_notes(frame: Any, label: str) -> list[Any]:
    """Run a Spark job that returns notes as its rows, and return the notes.

    Args:
        frame: a Spark data frame with one column of JSON, ``note``.
        label: label of the progress.

    Raises:
        ClusterError: the cluster could not finish the job.
        T5ReproError: an error that would stop the same rule on one machine.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    rows: list[Any] = []
    failures: list[BaseException] = []

    # A thread collects, so that this one can show the progress.
    def collect() -> None:
        try:
            rows.extend(frame.collect())
        except (PySparkException, Py4JError) as error:
            failures.append(error)

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    with Progress(label, total=None, unit="tasks") as progress:
        _follow(thread, frame.sparkSession.sparkContext.statusTracker(), progress)
    if failures:
        raise ClusterError(
            f"Spark could not finish {label}: {_first_line(failures[0])}; see the log, and run "
            "the same command again"
        ) from failures[0]
    notes = [json.loads(row["note"]) for row in rows]
    for note in notes:
        if "error" in note:
            kind, message = note["error"]
            # Tasks return errors as notes: Spark would retry a task that raises, and hide the
            # message.
            raise getattr(errors, kind)(message)
    return notes


def _follow(thread: threading.Thread, tracker: Any, progress: Progress) -> None:
    """Show the number of finished tasks until the job ends."""
    stages: dict[int, tuple[int, int]] = {}
    reported = 0
    while thread.is_alive():
        thread.join(POLL_SECONDS)
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is not None:
                stages[number] = (info.numCompletedTasks, info.numTasks)
        done = sum(count for count, _ in stages.values())
        if done > reported:
            started = sum(total for _, total in stages.values())
            progress.advance(done - reported, tasks_of_started_stages=started)
            reported = done


def _first_line(error: BaseException) -> str:
    """Return the most informative line of Spark's long message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or "Error: " in line]
    return (causes or lines or [type(error).__name__])[0]
