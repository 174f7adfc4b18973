"""A flipped bit is named, and no intact file is blamed; consistent forgeries and who sees them."""

import json
import os
import random
import re
from pathlib import Path

import pytest
from made_graphs import RESULT

from t5repro.errors import LineageError
from t5repro.files import write_json
from t5repro.lineage.findings import differing
from t5repro.lineage.store import files_below
from t5repro.lineage.verify import verify_tree

CLEANED = f"{RESULT}/c4_clean/a/1.manifest.json"
HASH = re.compile(r"\b[0-9a-f]{12,64}\b")


def flip(path: Path, at: int) -> None:
    """Flip one bit of a file and set its times back to what they were."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def files_of(run: Path) -> list[str]:
    paths = [path for part in ("data", "results", "records") for path in files_below(run / part)]
    names = [Path(path).relative_to(run).as_posix() for path in paths]
    return [
        *names,
        "data.dvc",
        "dvc.lock",
        "dvc.yaml",
        "configs/resolved/code/c4.json",
        "src/t5repro/one.py",
    ]


def blamed(run: Path) -> set[str]:
    try:
        verdict = verify_tree(run)
    except LineageError as error:  # a lock that is not YAML
        return set(re.findall(r"^(dvc.lock|data.dvc)(?= is not in DVC's format)", str(error)))
    for finding in verdict.findings:
        hashes = HASH.findall(finding.message)
        assert len(hashes) == len(set(hashes)), finding.line  # no two equal hashes are shown
    return {finding.path for finding in verdict.findings}


def test_a_flipped_bit_in_any_file_blames_this_file_alone(sealed: Path) -> None:
    names = files_of(sealed)
    assert len(names) == 18 + 4 + 10 + 5
    for name in names:
        for at in (0, (sealed / name).stat().st_size // 2, -2):
            flip(sealed / name, at)
            found = blamed(sealed)
            assert found == {name}, (name, at)
            flip(sealed / name, at)
    assert blamed(sealed) == set()


@pytest.mark.parametrize(
    "without", [[], ["dvc.lock", "dvc.yaml"], ["records"], ["records", "dvc.lock"]]
)
def test_any_flipped_bit_of_a_manifest_blames_no_file_of_its_job(
    sealed: Path, without: list[str]
) -> None:
    for name in without:
        (sealed / name).rename(sealed.parent / name)
    (sealed / ".git").rename(sealed.parent / "git")
    size = (sealed / CLEANED).stat().st_size
    attested = without != ["records", "dvc.lock"]
    for at in random.Random(0).sample(range(size), 60):
        flip(sealed / CLEANED, at)
        found = blamed(sealed)
        if attested:
            assert found == {CLEANED}, at
        else:  # nothing but the digits themselves tells
            assert f"{RESULT}/c4_clean/a/0.parquet" not in found
        flip(sealed / CLEANED, at)


def test_a_digit_of_an_input_hash_blames_the_manifest_that_has_it(sealed: Path) -> None:
    for name in ("records", "dvc.lock", "dvc.yaml", ".git"):
        (sealed / name).rename(sealed.parent / name)
    path = sealed / f"{RESULT}/c4/a/manifest.json"
    values = json.loads(path.read_text())
    sha256 = values["inputs"][0]["sha256"]
    values["inputs"][0]["sha256"] = sha256[:-1] + ("0" if sha256[-1] != "0" else "1")
    write_json(path, values)
    verdict = verify_tree(sealed)
    assert {finding.path for finding in verdict.findings} == {f"{RESULT}/c4/a/manifest.json"}
    assert sha256 in verdict.findings[0].message  # all 64 digits, as only the last one differs


def test_two_hashes_are_shown_as_far_as_they_differ() -> None:
    assert differing("a" * 64, "b" * 64) == ("a" * 12, "b" * 12)
    assert differing("a" * 64, "a" * 20 + "b" * 44) == ("a" * 21, "a" * 20 + "b")
    assert differing("a" * 64, "a" * 63 + "b") == ("a" * 64, "a" * 63 + "b")
