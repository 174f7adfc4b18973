"""A list of requests is one withdrawal, and its receipt can be checked in any clone."""

import csv
import gzip
import json
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from bulk_crawl import PAGES as CRAWLED
from bulk_crawl import REMOTE, bulk_crawl, found_pages, requests
from clones import commit
from made_crawl import EARLY, LATE, OLD, ONE, TWO, wet_record
from made_graphs import write

from t5repro.audit import removal
from t5repro.audit.receipt import RECEIPTS, SALTS
from t5repro.audit.receipt_check import check_receipt
from t5repro.audit.withdraw_list import withdraw_list
from t5repro.c4.reasons import WITHDRAWN
from t5repro.c4.wet.redact import _records, redact, texts_of_records
from t5repro.cli.main import main
from t5repro.config.sections.data import DataStage
from t5repro.config.withdrawn import FILES, PAGES, UNFINISHED, read_files, read_pages, text_hash
from t5repro.data.check import check
from t5repro.errors import LineageError, RawDataError
from t5repro.files import sha256_of, write_json
from t5repro.jobs.corpus import DataJob
from t5repro.lineage.dvc_cache import _configuration
from t5repro.lineage.keys import new_key, public_key_of, ssh_text
from t5repro.lineage.signatures import KEY_VARIABLE

SIGNERS = "configs/allowed_signers"
LIST = "asked.csv"
REASON = "asked by the owner"


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configured key of the steward."""
    new_key(tmp_path / "keys/steward", tmp_path / "crawl")
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "keys/steward"))
    return tmp_path / "keys/steward"


@pytest.fixture
def signing(crawl: Path, key: Path) -> Path:
    """The small crawl with a committed list of signers."""
    allow(crawl, key)
    write(crawl, ".gitignore", "/data/\n/results/\n/work/\n/asked*\n")
    commit(crawl, "a signer")
    return crawl


def allow(root: Path, key: Path) -> None:
    write(root, SIGNERS, f"steward {ssh_text(public_key_of(key))}\n")


def withdrawn(root: Path, text: str = f"url,{OLD},T-1\n") -> Path:
    """Withdraw a list, commit the whole and return the receipt."""
    path = write(root, LIST, f"kind,value,request\n{text}")
    answer = withdraw_list(root, path, reason=REASON, max_share=100)
    commit(root, "withdrawn")
    return root / answer.receipt_path


def salt_of(receipt: Path, line: int = 0) -> str:
    (root,) = (parent for parent in receipt.parents if (parent / ".git").exists())
    with (root / SALTS / f"{receipt.name.partition('.')[0]}.csv").open(newline="") as file:
        return list(csv.DictReader(file))[line]["salt"]


def faults(root: Path, receipt: Path, **options: str) -> list[str]:
    return [
        f"{item.path}: {item.message}" for item in check_receipt(root, receipt, **options).findings
    ]


def texts_left(path: Path) -> int:
    return sum(bool(text.strip()) for _, text in texts_of_records(path))


def test_two_thousand_requests_in_one_call_leave_no_text_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = bulk_crawl(tmp_path / "crawl")
    text, gone = requests(2000)
    path = write(tmp_path, LIST, text)
    assert len(found_pages(root, tmp_path / REMOTE)) == CRAWLED
    before = {
        shard: list(_records(shard, compressed=True)) for shard in (root / "data").rglob("*.gz")
    }
    rewritten = []

    def counted(path: Path, is_withdrawn: Callable[[str], bool]) -> int:
        rewritten.append(path)
        return redact(path, is_withdrawn)

    monkeypatch.setattr(removal, "redact", counted)
    options: dict[str, Any] = {"max_share": 60, "delete_cache": True, "delete_remote": True}
    answer = withdraw_list(root, path, **options)
    assert len(rewritten) == 8  # each shard once, whatever the number of requests
    left = found_pages(root, tmp_path / REMOTE)
    assert not gone & left.keys()
    assert left.keys() == set(range(CRAWLED)) - gone  # the raw files keep every other page
    for shard, records in before.items():
        after = list(_records(shard, compressed=True))
        assert len(after) == len(records)
        assert sum(old != new for old, new in zip(records, after, strict=True)) == 250
    assert sum(answer.redacted.values()) == 2000
    assert answer.remote_states == {"store": f"none of {len(answer.remote)} objects left"}
    items = answer.receipt["requests"]
    assert [item["pages"] for item in items] == [1] * 2000
    assert {len(item["files"]) for item in items} == {1}
    assert items[0]["artifacts"] == {"cleaned pages": 2, "corpus": 9}
    assert len(read_pages(root / PAGES).addresses) == 400
    assert "2000 requests, 2000 of them name something here" in answer.to_text()
    assert "and 1980 more" in answer.to_text()
    # Once more, without cleaned shards: the raw files are searched, and none changes.
    state = found_pages(root)
    again = withdraw_list(root, path, **options)
    assert sum(again.redacted.values()) == 2000  # records that have no text any more
    assert all(file.sha256 == sha256_of(root / file.path) for file in again.files)
    assert found_pages(root) == state


def test_a_list_states_what_depends_on_each_request(signing: Path) -> None:
    path = write(signing, LIST, f"kind,value,request\nurl,{ONE},T-1\ndomain,nowhere.example,T-2\n")
    before = read_pages(signing / PAGES)
    dry = withdraw_list(signing, path, reason=REASON, max_share=100, dry_run=True)
    assert read_pages(signing / PAGES) == before
    assert not (signing / RECEIPTS).exists()
    first, second = dry.receipt["requests"]
    assert (first["pages"], first["files"]) == (1, ["data/crawl/0.warc.wet.gz"])
    assert sum(first["artifacts"].values()) > 0
    assert (second["pages"], second["files"], second["scores"]) == (0, [], [])
    # A site that the crawl lacks is withdrawn as well: another crawl may have it.
    withdraw_list(signing, path, reason=REASON, max_share=100)
    assert read_pages(signing / PAGES).domains == {"nowhere.example": REASON}


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        (
            "a.csv",
            "kind,value\ndomian,a.example\nurl,a b://\nsha256,12\n,\nrow,x\n",
            [2, 3, 4, 5, 6],
        ),
        ("a.csv", "kind;value\n", [1]),
        ("a.csv", "kind,value\nurl,http://a.example/,x,y\n", [2]),
        ("a.jsonl", '{"value": "http://a.example/1"}\n{"valu": "x"}\n[1]\n{\n', [2, 3, 4]),
        ("a.txt", "http://a.example/1\n# note\n\ncom/\n/etc/passwd\n../x\n", [5, 6]),
        ("a.txt", "example.org/path.txt\nno_such_file.tsv/\n", [1, 2]),
        ("robots.txt", "User-agent: GPTBot\nDisallow: /a*b\nDisallow: /c$\n", [2, 3]),
    ],
)
def test_every_fault_of_a_list_is_named_with_its_line_before_anything_changes(
    signing: Path, name: str, text: str, messages: list[int]
) -> None:
    path = write(signing, name, text)
    before = [file.read_bytes() for file in sorted((signing / "data").rglob("*.gz"))]
    with pytest.raises(LineageError) as caught:
        withdraw_list(signing, path, reason=REASON, host="a.example", max_share=100)
    lines = str(caught.value).splitlines()
    assert all(f" line {number}: " in str(caught.value) for number in messages), lines
    assert lines[-1] == "nothing was withdrawn; correct these lines"
    assert [file.read_bytes() for file in sorted((signing / "data").rglob("*.gz"))] == before
    assert not (signing / UNFINISHED).exists()
    assert not (signing / PAGES).exists()


def test_a_list_needs_reasons_a_site_and_a_confirmed_share(signing: Path) -> None:
    path = write(signing, LIST, f"kind,value\nurl,{OLD}\n")
    with pytest.raises(LineageError, match="line 2: no reason; add one to the line, or --reason"):
        withdraw_list(signing, path)
    with pytest.raises(LineageError, match=r"names 2 of 4 pages \(50.0 %\), over --max-share 5;"):
        withdraw_list(signing, path, reason=REASON)
    with pytest.raises(LineageError, match="add --host example.org"):
        withdraw_list(signing, write(signing, "robots.txt", ""), reason=REASON)
    with pytest.raises(LineageError, match="has no request"):
        withdraw_list(signing, write(signing, "a.txt", "# none\n"), reason=REASON)
    with pytest.raises(LineageError, match="line 1: domain 'com.': expected a name such as"):
        withdraw_list(signing, write(signing, "a.txt", "com.\n"), reason=REASON)


@pytest.mark.parametrize(
    ("name", "text", "held"),
    [
        ("robots.txt", "User-agent: *\nDisallow: /\n\nUser-agent: CCBot\nDisallow: /t\n", {TWO}),
        ("robots.txt", "User-agent: GPTBot\nUser-agent: x\nDisallow: / # all\n", {ONE, TWO}),
        ("ai.txt", "User-Agent: *\nDisallow: *.png\nDisallow: *.html\n", {ONE, TWO}),
        ("sites.txt", "a.example\n", {ONE, TWO}),
    ],
)
def test_opt_outs_of_sites_are_read(signing: Path, name: str, text: str, held: set[str]) -> None:
    path = write(signing, name, text)
    withdraw_list(signing, path, reason=REASON, host="a.example", max_share=100)
    pages = read_pages(signing / PAGES)
    assert {url for url in (ONE, TWO, OLD) if pages.holds(url)} == held


def test_the_bytes_of_a_withdrawn_file_are_refused_under_another_name(
    signing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = signing / "data/crawl/1.warc.wet.gz"
    data = shard.read_bytes()
    withdrawn(signing, "file,data/crawl/1.warc.wet.gz,T-3\n")
    assert not shard.exists()
    files = read_files(signing / FILES)
    assert files.files == {"crawl/1.warc.wet.gz": REASON}
    assert files.sha256 == {sha256(data).hexdigest(): REASON}
    copy = signing / "data/crawl/new.warc.wet.gz"
    copy.write_bytes(data)
    source = {"origin": "x", "licence": "x", "files": {"crawl/new.warc.wet.gz": ""}}
    settings = DataStage.model_validate({"data": {"folder": "data", "sources": [source]}})
    monkeypatch.chdir(signing)
    with pytest.raises(RawDataError, match="new.* has the bytes of a file that withdrawn"):
        check(DataJob(settings, manifest=Path("results/s/data/manifest.json")))


def test_a_receipt_is_verified_in_another_clone(signing: Path, tmp_path: Path) -> None:
    receipt = withdrawn(signing, f"url,{OLD.replace('http', 'https')},T-1\ndomain,x.example,T-2\n")
    assert salt_of(receipt) not in receipt.read_text()
    assert OLD not in receipt.read_text()
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "--quiet", signing, other], check=True)
    shutil.copytree(signing / "data", other / "data")
    shutil.copytree(signing / "results", other / "results")
    copy = other / RECEIPTS / receipt.name
    check = check_receipt(other, copy, item=OLD, salt=salt_of(receipt))
    assert check.findings == ()
    assert (check.signer, [item["request"] for item in check.requests]) == ("steward", ["T-1"])
    assert check.searched == {"cleaned shards and corpus files": 1, "raw files": 2}
    assert check.to_text().splitlines()[-6].startswith("holds: withdrawn from future training")
    assert len(check_receipt(other, copy).requests) == 2
    # Sent by mail, it is the same receipt.
    assert faults(other, Path(shutil.copy(receipt, tmp_path / "mail.jsonl"))) == []


def forged_item(receipt: Path) -> dict[str, str]:
    return {"item": ONE, "salt": salt_of(receipt)}


def forged_salt(receipt: Path) -> dict[str, str]:
    return {"item": OLD, "salt": "0" * 32}


@pytest.mark.parametrize("forge", [forged_item, forged_salt])
def test_another_item_or_salt_is_refused(
    signing: Path, forge: Callable[[Path], dict[str, str]]
) -> None:
    receipt = withdrawn(signing)
    (fault,) = faults(signing, receipt, **forge(receipt))
    assert "no request of it is about" in fault


def test_an_altered_receipt_and_one_of_another_repository_are_refused(
    signing: Path, tmp_path: Path
) -> None:
    receipt = withdrawn(signing)
    altered = json.loads(receipt.read_text())
    altered["signatures"][0]["sig"] = "00" + altered["signatures"][0]["sig"][2:]
    forged = write(signing, "withdrawn/receipts/forged.intoto.jsonl", json.dumps(altered) + "\n")
    assert "no commit of this history has added it" in faults(signing, forged)[0]
    commit(signing, "a forgery")
    assert "not signed by the key of steward, or altered since" in faults(signing, forged)[0]
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    subprocess.run(["git", "init", "--quiet", stranger], check=True)
    commit(stranger, "another history")
    assert "or of another repository" in faults(stranger, receipt)[0]


def test_a_key_that_comes_with_its_receipt_does_not_count(crawl: Path, key: Path) -> None:
    commit(crawl, "no signer")
    allow(crawl, key)
    receipt = withdrawn(crawl)
    assert "unknown signer" in faults(crawl, receipt)[0]


def test_a_receipt_without_a_key_attests_nothing(
    signing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    assert "not a signed envelope" in faults(signing, withdrawn(signing))[0]


def test_a_tombstone_that_is_removed_later_and_text_that_comes_back_are_found(
    signing: Path,
) -> None:
    raw = (signing / "data/crawl/1.warc.wet.gz").read_bytes()
    receipt = withdrawn(signing)
    assert faults(signing, receipt) == []
    (signing / "data/crawl/1.warc.wet.gz").write_bytes(raw)
    found = faults(signing, receipt)
    assert any("has the bytes from before the withdrawal" in fault for fault in found)
    assert any("has the text of 2 withdrawn pages" in fault for fault in found)
    (signing / PAGES).unlink()
    assert any("has lost" in fault or "withdraws it" in fault for fault in faults(signing, receipt))
    # With its salt, the requester learns that the list names the page no more.
    (fault,) = faults(signing, receipt, item=OLD, salt=salt_of(receipt))
    assert "no list of withdrawn sources names it any more" in fault


def test_a_withdrawn_text_that_comes_back_under_another_url_is_found_and_withdrawn(
    signing: Path,
) -> None:
    receipt = withdrawn(signing)
    texts = {text_hash(f"Secret of {OLD} {time}.") for time in (EARLY, LATE)}
    assert read_pages(signing / PAGES).texts == dict.fromkeys(texts, REASON)
    (statement,) = (json.loads(b64decode(json.loads(receipt.read_text())["payload"])),)
    assert statement["predicate"]["texts"] == sorted(texts)
    other = "http://other.example/copy"
    path = signing / "data/crawl/0.warc.wet.gz"
    copy = wet_record(other, LATE, f"  Secret of\n\n{OLD}   {EARLY}.\n")
    near = wet_record("http://other.example/near", LATE, f"Secrets of {OLD} {EARLY}.")
    path.write_bytes(path.read_bytes() + gzip.compress((copy + near).encode()))
    assert faults(signing, receipt) == [
        f"data/crawl/0.warc.wet.gz: has the text of a withdrawn page at {other}; "
        "withdraw a list with this address"
    ]
    # As cleaning counts it: the page has no row, so only the raw file has its address.
    manifest = signing / "results/r/c4_clean/a/0.manifest.json"
    values = json.loads(manifest.read_text())
    values["counters"]["read"] = {"read": 4, WITHDRAWN: 1}
    write_json(manifest, values)
    assert faults(signing, withdrawn(signing, f"url,{other},T-2\n")) == []
    assert [bool(text.strip()) for _, text in texts_of_records(path)] == [True, True, False, True]


def test_objects_of_cache_and_remote_that_are_left_are_found(tmp_path: Path, key: Path) -> None:
    root = bulk_crawl(tmp_path / "crawl")
    allow(root, key)
    commit(root, "a signer")
    text, _ = requests(5)
    answer = withdraw_list(root, write(tmp_path, LIST, text))
    commit(root, "withdrawn")
    left = faults(root, root / answer.receipt_path)
    assert sum("DVC's cache has it" in fault for fault in left) == len(answer.cache) > 0
    assert [fault for fault in left if fault.startswith("remote store: ")]


def test_the_command_takes_a_source_or_a_list(
    signing: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(signing)
    _configuration.cache_clear()
    write(signing, LIST, f"kind,value,request\nurl,{OLD},T-1\n")
    options = ["--reason", REASON, "--max-share", "60"]
    assert main(["withdraw", "--reason", "x"]) == 2
    assert main(["withdraw", OLD, *options]) == 2
    assert "--max-share belongs to --list" in capsys.readouterr().err
    assert main(["withdraw", "--list", LIST, *options]) == 0
    (receipt,) = RECEIPTS.iterdir()
    assert f"receipt: {receipt}" in capsys.readouterr().out
    commit(signing, "withdrawn")
    assert main(["verify", "--receipt", str(receipt)]) == 0
    assert main(["verify", "--item", OLD]) == 2
    assert main(["verify", "--receipt", str(receipt), "--item", OLD]) != 0


def test_a_second_list_finds_pages_whose_cleaned_shards_an_earlier_one_deleted(
    signing: Path,
) -> None:
    withdrawn(signing)
    assert not (signing / "results/r/c4_clean/a/1.parquet").exists()
    withdrawn(signing, "domain,b.example,T-2\n")
    assert texts_left(signing / "data/crawl/1.warc.wet.gz") == 0
    receipt = withdrawn(signing, f"url,{ONE},T-3\n")
    assert texts_left(signing / "data/crawl/0.warc.wet.gz") == 1
    assert faults(signing, receipt) == []
    write(signing, LIST, "kind,value\nrow,row://own.jsonl#3\n")
    with pytest.raises(LineageError, match="line 2: row://own.jsonl#3: no row of this id was read"):
        withdraw_list(signing, signing / LIST, reason=REASON)
