"""DVC's cache is where DVC says it is, at any level of its configuration."""

import subprocess
import sys
from pathlib import Path

import pytest
from made_graphs import WEIGHTS, lock

from t5repro.audit.withdraw import withdraw
from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.dvc_cache import folder_files, object_path, objects_folder
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.impact import in_cache, objects_of
from t5repro.lineage.store import Folder, Revision, open_store


@pytest.fixture(autouse=True)
def no_other_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in ("GLOBAL", "SYSTEM"):
        monkeypatch.setenv(f"DVC_{level}_CONFIG_DIR", str(tmp_path / level))


def configure(folder: Path, location: str, name: str = "config") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"[cache]\n    dir = {location}\n")


def commit(run: Path) -> Revision:
    (run / ".gitignore").write_text("/results/\n/data/\n/.dvc/\n/work/\n")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "run"]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=run, check=True
        )
    store = open_store(run, "HEAD")
    assert isinstance(store, Revision)
    return store


@pytest.mark.parametrize("level", ["GLOBAL", "SYSTEM"])
def test_a_cache_that_the_user_configured_for_all_projects_is_read(
    run: Path, tmp_path: Path, level: str
) -> None:
    lock(run)
    (run / ".dvc/cache").rename(tmp_path / "shared")
    configure(tmp_path / level, str(tmp_path / "shared"))
    revision = commit(run)
    assert revision.read(WEIGHTS) == (run / WEIGHTS).read_bytes()
    md5 = hash_file(run / WEIGHTS).md5
    objects = objects_of(run, [WEIGHTS])
    assert objects == [(md5, WEIGHTS)]
    assert in_cache(run, objects) == [tmp_path / "shared/files/md5" / md5[:2] / md5[2:]]
    withdrawal = withdraw(run, "data/crawl/1.wet", reason="ticket 7", dry_run=True)
    raw, weights = hash_file(run / "data/crawl/1.wet").md5, md5
    assert {raw, weights} <= {Path(name).parent.name + Path(name).name for name in withdrawal.cache}
    assert all(name.startswith(f"{tmp_path}/shared/") for name in withdrawal.cache)


def test_the_nearest_level_wins_and_relative_folders_are_relative_to_its_file(
    tmp_path: Path,
) -> None:
    configure(tmp_path / "GLOBAL", str(tmp_path / "global"))
    for name, expected in (("config", "repository"), ("config.local", "local")):
        root = tmp_path / name
        configure(root / ".dvc", "repository")
        configure(root / ".dvc", f"../{expected}", name)
        assert objects_folder(root) == root / expected / "files/md5"


def test_a_folder_that_dvc_does_not_know_has_the_default_and_dvc_is_not_imported(run: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from t5repro.lineage.dvc_cache import objects_folder\n"
        "from t5repro.lineage.verify import verify_tree\n"
        "assert verify_tree(Path()).findings == ()\n"
        "assert objects_folder(Path()) == Path.cwd() / '.dvc/cache/files/md5'\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('dvc', 'snakemake')]\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=run, check=True)


def test_a_configuration_that_dvc_cannot_read_is_named(run: Path) -> None:
    (run / ".dvc").mkdir()
    (run / ".dvc/config").write_text("[cache\n")
    with pytest.raises(LineageError, match="DVC cannot read its configuration"):
        objects_folder(run)


@pytest.mark.parametrize(
    "content", [b"[]", b"{", b'[{"md5": 1}]', pytest.param(b"[" * 200_000, id="deep")]
)
def test_a_damaged_file_list_of_a_folder_is_named(run: Path, content: bytes) -> None:
    lock(run)
    (folder,) = [tracked for tracked in Folder(run).lock().outputs if tracked.path == "data"]
    assert len(folder_files(run, folder)) == 4
    object_path(run, folder.md5).write_bytes(content)
    with pytest.raises(ArtifactError, match="is not the one with the hash in dvc.lock; delete it"):
        folder_files(run, folder)
