"""What an index shows of the package: pages that others can show, and no invented address."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from checkout import ROOT

HOSTED = {"GITHUB_SERVER_URL": "https://host.example", "GITHUB_REPOSITORY": "owner/name"}
TARGET = re.compile(r"\]\(([^)\s]+)\)")


def described(option: str, **environment: str) -> str:
    """Return what setuptools knows about the package."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", "setup.py", "--quiet", option],
        cwd=ROOT,
        env=inherited | environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_links_of_a_hosted_build_lead_to_the_commit_in_its_repository() -> None:
    text = described("--long-description", **HOSTED, GITHUB_SHA="c0ffee")
    targets = [target for target in TARGET.findall(text) if not target.startswith("#")]
    assert len(targets) > 40
    assert [target for target in targets if not target.startswith("https://")] == []
    assert "![The report" in text
    assert "(https://host.example/owner/name/raw/c0ffee/docs/images/report.png)" in text
    assert "(https://host.example/owner/name/blob/c0ffee/docs/own_text.md)" in text
    for path in re.findall(r"c0ffee/([^)#\s]+)", text):
        assert (ROOT / path).exists(), path


def test_a_build_elsewhere_has_no_links_to_files_and_no_diagram() -> None:
    text = described("--long-description")
    targets = TARGET.findall(text)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert "```mermaid" not in text
    assert "| **My text** | a corpus of your own text, in five lines |" in text


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_each_promised_python_is_a_classifier_and_checked(version: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    text = (ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    stated = {step.get("with", {}).get("python-version") for step in steps}
    matrix = jobs["python"]["strategy"]["matrix"]["version"]
    assert version in stated | set(matrix)


def test_only_the_job_that_publishes_may_publish() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text


def test_hooks_before_a_commit_are_commands_of_the_locked_environment() -> None:
    content = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = content["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")
