"""The files around the package: rule files, run files, profiles, the bundled crawl.

A *project* is a folder with these files: a checkout, or what `t5repro init` has written. Commands
read the files of the working folder. An installed wheel has a copy of its own, for `t5repro init`
and for commands outside of a project; ``project_files.txt`` lists them, and ``setup.py`` adds them.
"""

from importlib import resources
from pathlib import Path

from t5repro.errors import SettingsError
from t5repro.files import write_bytes

SNAKEFILE = Path("Snakefile")
LIST = "project_files.txt"
IN_WHEEL = "project"


def bundled_folder() -> Path:
    """Return the folder with the files that belong to the installed package.

    That of an editable installation is the root of its checkout.
    """
    package = Path(str(resources.files("t5repro")))
    in_wheel = package / IN_WHEEL
    return in_wheel if in_wheel.is_dir() else package.parents[1]


def bundled_files() -> list[Path]:
    """Return the bundled files, relative to their folder, sorted."""
    folder = bundled_folder()
    patterns = resources.files("t5repro.config").joinpath(LIST).read_text("utf-8").splitlines()
    paths = (path for pattern in patterns for path in folder.glob(pattern))
    return sorted(path.relative_to(folder) for path in paths)


def project_file(path: Path) -> Path:
    """Return a file or folder of the working folder; the bundled one if it is absent there.

    Args:
        path: relative to the root of a project, such as ``configs/base.yaml``.
    """
    bundled = bundled_folder() / path
    return bundled if bundled.exists() and not path.exists() else path


def is_project(folder: Path = Path()) -> bool:
    """Return whether a folder has the graph of the chain."""
    return (folder / SNAKEFILE).is_file()


def require_project() -> None:
    """Refuse to work outside of a project.

    Raises:
        SettingsError: the working folder has no Snakefile.
    """
    if not is_project():
        raise SettingsError(
            f"{Path.cwd()} has no Snakefile; go to a checkout, or to a folder that "
            "`t5repro init FOLDER` has written"
        )


def write_project(folder: Path) -> list[Path]:
    """Write the bundled files into a folder, or those that it lacks; return their paths in it.

    Raises:
        SettingsError: one of them is there with other content; nothing is written.
        StorageError: the disk is full, or the folder cannot be written.
    """
    paths = bundled_files()
    contents = {path: (bundled_folder() / path).read_bytes() for path in paths}
    existing = [path for path in paths if (folder / path).exists()]
    for path in existing:
        # Equal files are of this command, killed before its end.
        if not (folder / path).is_file() or (folder / path).read_bytes() != contents[path]:
            raise SettingsError(
                f"{folder / path} exists, and no file is overwritten; name a new folder"
            )
    for path in set(paths).difference(existing):
        write_bytes(folder / path, contents[path])
    return paths
