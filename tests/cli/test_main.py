"""The command line: messages without tracebacks, exit codes, and no waiting for TensorFlow."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.cli.main import main


def test_an_error_is_one_message_with_its_exit_code(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "t5repro",
            "stage",
            "data",
            "--settings",
            "{}",
            "--manifest",
            "m.json",
            "--log",
            log,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    message = "t5repro stage data: --settings of data: setting 'data' is missing\n"
    assert (ran.returncode, ran.stderr, log.read_text()) == (2, message, message)


def test_a_pair_argument_without_a_name_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    code = main(
        [
            "stage",
            "tasks",
            "--settings",
            "{}",
            "--task",
            "squad",
            "--files",
            "train",
            "--folder",
            "x",
            "--manifest",
            "y",
        ]
    )
    assert code == 2
    assert "argument 'train' must be NAME=FILE" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["config", "validate", "folder"], "folder is a folder; name a run file, such as configs/"),
        (["config", "show", "folder"], "folder is a folder; name a run file, such as configs/"),
        (
            ["weights", "export", "--form=huggingface", "--weights=folder", "--vocabulary=v"],
            "--weights folder is a folder; name a file, such as folder/manifest.json",
        ),
        (
            ["weights", "saved-model", "--settings={}", "--weights=m", "--vocabulary=folder"],
            "--vocabulary folder is a folder; name a file, such as folder/sentencepiece.model",
        ),
    ],
)
def test_a_folder_in_place_of_a_file_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    out = ["--folder=out"] if words[0] != "config" else []
    assert main([*words, *out]) == 2
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["batches", "folder", "--step", "1"], "folder is a folder; name a file, such as folder/m"),
        (["show", "results/dmo"], "there is no folder results/dmo; this folder has no results"),
    ],
)
def test_a_wrong_folder_of_results_is_named_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    assert main(words) == 1
    assert message in capfd.readouterr().err


def test_run_files_are_validated_together_and_a_folder_among_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    changes = tmp_path / "changes.yaml"
    changes.write_text("experiments: [{name: baseline}, {name: b, change: {pretrain.stepps: 3}}]")
    assert main(["config", "validate", "configs/demo.yaml", str(changes)]) == 2
    assert f"{changes}:1" in (printed := capfd.readouterr().err)
    assert "pretrain.stepps" in printed
    assert main(["config", "validate", "configs/demo.yaml", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder" in capfd.readouterr().err


def test_a_package_that_the_lock_of_a_run_lacks_is_named_with_the_lock_that_has_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "key").touch()
    code = (
        "import sys; from t5repro.cli.main import main\n"
        "sys.modules['securesystemslib'] = None\n"  # an import of it then fails
        "sys.exit(main(['sign', '--key', 'key', '--allow', 'me']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    message = (
        "t5repro sign: securesystemslib is not installed; requirements/cpu-gpu.txt has "
        "the packages of all commands (make setup)\n"
    )
    assert (ran.returncode, ran.stderr) == (2, message)


def test_bash_completes_commands_and_their_options() -> None:
    script = """
        eval "$(python -m t5repro --completion bash)"
        complete_last() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_t5repro; echo "${COMPREPLY[@]}"
        }
        complete_last t5repro ver
        complete_last t5repro show --h
        complete_last t5repro predict results/demo --lo
    """
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["verify", "--help", "--log-probabilities"], ran.stderr


def test_help_and_settings_do_not_wait_for_tensorflow() -> None:
    code = (
        "import sys; from t5repro.cli.main import main\n"
        "main(['config', 'show', 'configs/demo.yaml'])\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_config_show_prints_the_resolved_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["config", "show", "configs/base.yaml"]) == 0
    assert '"d_model": 768' in capsys.readouterr().out


def test_the_list_of_tasks_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "list"]) == 0
    assert "glue_cola" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_job_leaves_no_half_file_and_says_so_by_its_code(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    script = (
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from t5repro import files\n"
        "from t5repro.cli import main, tasks\n"
        "def slow(arguments):\n"
        "    with files.atomic_path(Path('out')) as temporary:\n"
        "        temporary.write_text('half')\n"
        "        print('ready', flush=True)\n"
        "        signal.pause()\n"
        "tasks._list_tasks = slow\n"
        "sys.exit(main.main(['tasks', 'list']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    job = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as on a terminal
    )
    assert job.stdout is not None
    assert job.stdout.readline().strip() == b"ready"
    job.send_signal(sent)
    assert job.wait() == code
    job.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_the_usage_of_a_command_names_that_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["trace", "--help"])
    assert capsys.readouterr().out.startswith("usage: t5repro trace [-h]")


def test_a_text_is_no_required_argument_of_predict(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["predict"])
    assert capsys.readouterr().err.endswith("the following arguments are required: run\n")
