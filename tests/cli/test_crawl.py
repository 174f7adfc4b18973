"""The command that plans the fetch of a crawl."""

from pathlib import Path

import pytest

from t5repro.cli.main import main


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(
        f"data: {{folder: {tmp_path}/data, sources: "
        "[{origin: https://x/wet.paths, licence: none, files: {wet.paths: ''}}]}\n"
        "c4: {crawl: [], crawl_paths: wet.paths, crawl_prefix: 'https://host/', clean_shards: 4}\n"
    )
    return path


def test_the_plan_of_a_run_file_is_printed(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crawl", "plan", str(run_file)]) == 1
    assert (
        "data/wet.paths, the list of WET paths, is missing; get it from https://x/wet.paths"
        in capsys.readouterr().err
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data/wet.paths").write_text("".join(f"{number}\n" for number in range(1000)))
    assert main(["crawl", "plan", str(run_file), "--sample", "0", "--rate", "1Gbit/s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "files     1,000 WET files, and 8 of them for Punkt"
    assert lines[2] == "transfer  132 GB, 0.3 hours at 125 MB/s"
    assert "(250 files; c4.clean_shards 4, c4.clean_parts 1)" in lines[3]


def test_a_list_and_an_address_may_be_given_instead(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list").write_text("a\nb\n")
    words = ["crawl", "plan", str(run_file), "--paths", str(tmp_path / "list"), "--sample", "0"]
    assert main([*words, "--prefix", "s3://bucket/"]) == 0
    assert capsys.readouterr().out.startswith("files     2 WET files, and 2 of them for Punkt\n")
    assert main([*words, "--prefix", "folder"]) == 1
    assert main([*words, "--rate", "100"]) == 2
    assert main([*words[:-1], "-1"]) == 2
    run_file.write_text("c4: {crawl: ['crawl/*'], crawl_paths: ''}\n")
    assert main(["crawl", "plan", str(run_file)]) == 2
    error = capsys.readouterr().err
    assert "c4.crawl_paths is empty, so no WET file is fetched; pass --paths" in error
