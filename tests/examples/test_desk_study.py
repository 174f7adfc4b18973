"""The text of the desk study: what is read from packages, what is refused, equal bytes."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from checkout import ROOT

SCRIPT = ROOT / "examples" / "desk_study" / "fetch_text.py"
SENTENCES = [
    "The first river of the valley carried the old boats down to the wide grey sea every spring.",
    "Nobody in the small village remembered who had built the stone bridge over the second river.",
    "A third road went through the forest, and only the miller and his two daughters used it.",
    "When the winter was long, the people told each other stories about the bridge and the road.",
    "In the fourth year the water rose so high that the miller had to leave his house for a month.",
]
GERMAN = (
    "Niemand im kleinen Dorf wusste noch, wer die steinerne Brücke über den Fluss gebaut hatte."
)
MAN = """.\\" Copyright of somebody
.TH LS 1
.SH NAME
ls \\- list the contents of the directories that a person names on the command line.
.SH DESCRIPTION
{}
.PP
The option
.BR \\-a ,
which many people use every day, also shows the files that begin with a dot.
.nf
This is an example of code and it is left out of the text in any case.
.fi
.SH AUTHOR
Written by somebody who is named here in a sentence of more than eight words.
"""


def html(*paragraphs: str) -> str:
    return "<body>" + "".join(f"<p>{text}</p>" for text in paragraphs) + "</body>"


def tar(files: dict[str, bytes], mode: str, link: tuple[str, str] | None = None) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        if link:
            entry = tarfile.TarInfo(link[0])
            entry.type, entry.linkname = tarfile.SYMTYPE, link[1]
            archive.addfile(entry)
    return target.getvalue()


def deb(files: dict[str, bytes], link: tuple[str, str] | None = None) -> bytes:
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": b"odd",
        "data.tar.xz": tar(files, "w:xz", link),
    }
    data = b"!<arch>\n"
    for name, content in parts.items():
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
        data += header.encode() + content + b"\n" * (len(content) % 2)
    return data


def wheel(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


def fetch(
    folder: Path, name: str, archive: bytes, /, *members: dict[str, str], **changes: str
) -> subprocess.CompletedProcess[str]:
    """Read a package that lies in a folder as if it were downloaded by hand."""
    archives = folder / "archives"
    archives.mkdir(exist_ok=True)
    (archives / name).write_bytes(archive)
    package = {
        "client": "apt-get",
        "name": "tales",
        "version": "1:1.0-1",
        "sha256": hashlib.sha256(archive).hexdigest(),
        "licence": "CC0",
        "kind": "book",
        "members": list(members),
    }
    (folder / "packages.yaml").write_text(yaml.safe_dump([package | changes]))
    command = [sys.executable, str(SCRIPT), str(folder / "out"), "--packages",
               str(folder / "packages.yaml"), "--archives", str(archives)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def rows(folder: Path, language: str = "en") -> list[dict[str, str]]:
    lines = (folder / "out" / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


HTML = {"path": "usr/*.html", "language": "en", "format": "html"}


def test_prose_of_a_debian_package_becomes_rows_with_the_path_as_url(tmp_path):
    page = (
        '<div class="sphinxsidebar"><p>' + SENTENCES[3] + "</p></div><h1>A title of a page.</h1>"
        + html(*SENTENCES)
        + "<pre>print('this is code and therefore it is not a part of the text.')</pre>"
        + "<ul><li><a href='x'>" + SENTENCES[4] + " More.</a></li></ul>"
        + html(GERMAN, "Copyright © 2020 by the people who wrote this long book of stories.")
        + html(*SENTENCES[:2])
    )  # fmt: skip
    archive = deb({"./usr/a.html": page.encode()}, ("./usr/b.html", "/etc/passwd"))
    result = fetch(tmp_path, "tales_1.deb", archive, HTML)
    assert (result.returncode, result.stderr) == (0, "")
    assert rows(tmp_path) == [
        {
            "url": "debian://tales=1:1.0-1/usr/a.html#0",
            "language": "en",
            "text": "\n".join(SENTENCES),
        }
    ]


def test_a_manual_page_keeps_the_sentences_of_its_description(tmp_path):
    text = MAN.format("\n".join(SENTENCES))
    archive = deb({"./usr/ls.1.gz": gzip.compress(text.encode())})
    part = {"path": "usr/*.1.gz", "language": "en", "format": "man"}
    assert fetch(tmp_path, "tales_1.deb", archive, part).returncode == 0
    assert rows(tmp_path)[0]["text"] == (
        " ".join(SENTENCES) + "\nThe option -a, which many people use every day, also shows the"
        " files that begin with a dot."
    )


@pytest.mark.parametrize(
    ("name", "make"), [("tales-1.whl", wheel), ("tales-1.tar.gz", lambda files: tar(files, "w:gz"))]
)
def test_wheels_and_source_archives_are_read_as_well(tmp_path, name, make):
    archive = make({"usr/q.html": html(*SENTENCES).encode()})
    assert fetch(tmp_path, name, archive, HTML, client="pip", version="1").returncode == 0
    assert rows(tmp_path)[0]["url"] == "pypi://tales=1/usr/q.html#0"


def test_the_order_of_members_changes_no_byte(tmp_path):
    pages = {
        "./usr/a.html": html(*SENTENCES).encode(),
        "./usr/b.html": html(*(text.replace("river", "canal") for text in SENTENCES)).encode(),
    }
    files = []
    for number, names in enumerate((sorted(pages), sorted(pages, reverse=True))):
        folder = tmp_path / str(number)
        folder.mkdir()
        archive = deb({name: pages[name] for name in names})
        assert fetch(folder, "tales_1.deb", archive, HTML).returncode == 0
        files.append((folder / "out" / "en.jsonl").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("name", ["./usr/../../a.html", "/usr/a.html"])
def test_a_path_that_leaves_the_package_is_refused(tmp_path, name):
    result = fetch(tmp_path, "tales_1.deb", deb({name: b"text"}), HTML)
    assert result.returncode == 1
    assert f"the path {name!r} leaves the folder of the package" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_damaged_package_is_named(tmp_path):
    result = fetch(tmp_path, "tales_1.deb", b"!<arch>\nodd", HTML)
    assert "tales_1.deb: no data.tar.xz or data.tar.gz in it; delete it" in result.stderr
    result = fetch(tmp_path, "tales_1.whl", b"PK odd", HTML)
    assert "tales_1.whl: cannot be read (File is not a zip file); delete it" in result.stderr


def test_a_pattern_without_a_file_is_an_error(tmp_path):
    result = fetch(tmp_path, "tales_1.deb", deb({"./usr/a.txt": b"text"}), HTML)
    assert result.returncode == 1
    assert "tales: no file matches ['usr/*.html']; correct the patterns" in result.stderr


def test_a_wrong_field_of_the_list_is_an_error(tmp_path):
    result = fetch(tmp_path, "tales_1.deb", deb({}), HTML, client="curl")
    assert result.returncode == 1
    assert "Input should be 'apt-get' or 'pip'" in result.stderr


@pytest.mark.skipif(not shutil.which("apt-get"), reason="apt-get is not on this machine")
def test_a_version_that_is_gone_is_named_with_the_cure(tmp_path):
    result = fetch(tmp_path, "other.deb", deb({}), HTML, version="0.0-gone", name="no-such-package")
    assert result.returncode == 1
    assert "no-such-package=0.0-gone: apt-get cannot download it" in result.stderr
    assert "--archives, or leave the package out of the list" in result.stderr


def test_the_list_names_each_package_once_with_a_licence():
    packages = yaml.safe_load((SCRIPT.parent / "packages.yaml").read_text(encoding="utf-8"))
    names = [package["name"] for package in packages]
    assert len(set(names)) == len(names)
    assert all(package["licence"] for package in packages)
