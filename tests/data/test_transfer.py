"""A transfer ends with the whole content, whatever the server does on the way, or with an error."""

import datetime
import email.utils
import random
from pathlib import Path

import pytest
from servers import BUSY, CUT, ENDLESS, LIE, STALL, Server, origin

from t5repro.data import https as limits
from t5repro.data import transfer
from t5repro.data.transfer import (
    ATTEMPTS,
    AbsentError,
    TransferError,
    copy_path,
    fetch_address,
    fetch_once,
    partial_path,
    size_of,
)
from t5repro.errors import RawDataError

CONTENT = random.Random(0).randbytes(3_000_000)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("fault", [BUSY, CUT, STALL, LIE])
def test_a_fault_that_passes_costs_an_attempt_and_no_byte_twice(
    https: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == STALL:
        monkeypatch.setattr(transfer, "TIMEOUT_SECONDS", 0.5)
    https.files["/pages"] = CONTENT
    https.fault = lambda path, number: fault if number == 1 else None
    found = fetch_address(origin(https, "pages"), tmp_path / "pages")
    assert (tmp_path / "pages").read_bytes() == CONTENT
    assert files_in(tmp_path) == ["pages"]
    assert found.attempts >= 2  # a busy machine may be late as well
    if fault == CUT:
        assert found.attempts == 2
        assert found.resumed == len(CONTENT) // 2
        assert found.received == https.sent == len(CONTENT)


def test_a_transfer_continues_behind_a_redirection(https: Server, tmp_path: Path) -> None:
    # The Hugging Face Hub answers with the address of its storage.
    https.files["/stored"] = CONTENT
    https.moved["/resolve"] = origin(https, "stored")
    https.fault = lambda path, number: CUT if (path, number) == ("/stored", 1) else None
    found = fetch_address(origin(https, "resolve"), tmp_path / "pages")
    assert (tmp_path / "pages").read_bytes() == CONTENT
    assert (found.resumed, found.received) == (len(CONTENT) // 2, len(CONTENT))
    assert https.asked == {"/resolve": 2, "/stored": 2}


def test_300_files_arrive_through_a_server_that_fails_one_time_in_five(
    https: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is busy, cuts, stalls and promises a byte too much.
    monkeypatch.setattr(transfer, "TIMEOUT_SECONDS", 15)
    draw = random.Random(4)  # of which one stalls
    https.files = {f"/{number}": draw.randbytes(2_000 + number) for number in range(300)}
    faulty = {
        path: draw.choices((BUSY, CUT, LIE, STALL), (30, 30, 10, 0.2)) * (draw.random() < 0.2)
        for path in https.files
    }
    https.fault = lambda path, number: dict(enumerate(faulty[path], 1)).get(number)
    taken = [
        fetch_address(origin(https, path[1:]), tmp_path / path[1:]) for path in sorted(https.files)
    ]
    assert {
        f"/{name}": (tmp_path / name).read_bytes() for name in files_in(tmp_path)
    } == https.files
    repeated = sum(map(len, faulty.values()))
    assert 50 < repeated < 80
    kinds = {path: faults[0] for path, faults in faulty.items() if faults}
    assert set(kinds.values()) == {BUSY, CUT, LIE, STALL}
    assert sum(https.asked.values()) == 300 + repeated
    # Half a file was there before a cut or a stall; a server that lied ends with an empty range.
    lengths = {path: len(https.files[path]) for path in kinds}
    halves = sum(lengths[path] // 2 for path, kind in kinds.items() if kind in (CUT, STALL))
    wholes = sum(lengths[path] for path, kind in kinds.items() if kind == LIE)
    assert sum(each.resumed for each in taken) == halves + wholes
    total = sum(map(len, https.files.values()))
    assert https.sent == sum(each.received for each in taken) == total  # none twice complete


def test_a_server_that_never_sends_the_promised_length_is_given_up(
    https: Server, tmp_path: Path
) -> None:
    https.files["/pages"] = b"text"
    https.fault = lambda path, number: LIE
    with pytest.raises(TransferError, match=rf"pages broke off .* in {ATTEMPTS} attempts"):
        fetch_address(origin(https, "pages"), tmp_path / "pages")
    assert not (tmp_path / "pages").exists()


def test_another_version_of_the_content_is_not_joined_to_the_first_half(
    https: Server, tmp_path: Path
) -> None:
    https.files["/pages"] = CONTENT
    https.fault = lambda path, number: CUT if number == 1 else BUSY
    with pytest.raises(TransferError):
        fetch_address(origin(https, "pages"), tmp_path / "pages")
    assert partial_path(tmp_path / "pages").stat().st_size == len(CONTENT) // 2
    https.files["/pages"] = other = CONTENT[::-1][:-7]
    https.fault = lambda path, number: None
    assert fetch_address(origin(https, "pages"), tmp_path / "pages").resumed == 0
    assert (tmp_path / "pages").read_bytes() == other


def test_an_absent_file_is_named_at_once(https: Server, tmp_path: Path) -> None:
    with pytest.raises(AbsentError, match=r"/none does not exist \(status 404\)"):
        fetch_address(origin(https, "none"), tmp_path / "none")
    assert https.asked == {"/none": 1}
    assert files_in(tmp_path) == []


def waits(server: Server, path: Path, monkeypatch: pytest.MonkeyPatch, header: str) -> list[float]:
    """Return the pauses of a transfer whose first request is answered with `Retry-After`."""
    found: list[float] = []
    monkeypatch.setattr(transfer, "pause", found.append)
    server.files["/pages"] = b"text"
    server.busy_headers = {"Retry-After": header}
    server.fault = lambda path, number: BUSY if number == 1 else None
    fetch_address(origin(server, "pages"), path)
    return found


def test_a_busy_server_is_asked_again_when_it_says(
    https: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert waits(https, tmp_path / "pages", monkeypatch, "7") == [7.0]
    https.asked.clear()
    in_a_minute = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
    date = email.utils.format_datetime(in_a_minute, usegmt=True)
    (seconds,) = waits(https, tmp_path / "pages", monkeypatch, date)
    assert 0 <= seconds <= 300
    https.asked.clear()
    with pytest.raises(TransferError, match="asks to come back in 86400 seconds .* run again then"):
        waits(https, tmp_path / "pages", monkeypatch, "86400")


def test_pauses_grow_and_are_random(
    https: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[float] = []
    monkeypatch.setattr(transfer, "pause", found.append)
    https.fault = lambda path, number: BUSY
    with pytest.raises(TransferError, match="status 503"):
        fetch_address(origin(https, "pages"), tmp_path / "pages")
    assert len(found) == ATTEMPTS - 1
    assert all(0 <= seconds <= 2**number for number, seconds in enumerate(found))
    assert len(set(found)) == len(found)


def test_only_https_and_stores_are_fetched(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="only https addresses can"):
        fetch_address("http://example.org/a", tmp_path / "a")


@pytest.mark.parametrize("moved", ["http://127.0.0.1/x", "ftp://127.0.0.1/x"])
def test_a_redirection_that_leaves_https_is_refused(
    https: Server, tmp_path: Path, moved: str
) -> None:
    https.moved["/pages"] = moved
    address = origin(https, "pages")
    with pytest.raises(RawDataError, match=f"pages redirects to '{moved}', and only https"):
        fetch_address(address, tmp_path / "pages")
    with pytest.raises(RawDataError, match="ask its owner for an https address"):
        size_of(address)
    assert files_in(tmp_path) == []


def test_a_redirection_to_a_file_of_this_machine_is_refused(https: Server, tmp_path: Path) -> None:
    https.moved["/pages"] = "file:///etc/passwd"
    with pytest.raises(RawDataError, match="'file:///etc/passwd' is not allowed"):
        fetch_address(origin(https, "pages"), tmp_path / "pages")


def test_redirections_without_end_are_given_up(https: Server, tmp_path: Path) -> None:
    for number in range(20):
        https.moved[f"/{number}"] = origin(https, str(number + 1))
    with pytest.raises(RawDataError, match="is refused .*infinite loop"):
        fetch_address(origin(https, "0"), tmp_path / "pages")
    assert sum(https.asked.values()) == 11  # the first, and ten redirections


@pytest.mark.parametrize("states_length", [True, False])
def test_more_bytes_than_a_raw_file_can_have_are_refused(
    https: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states_length: bool
) -> None:
    monkeypatch.setattr(limits, "MAX_BYTES", len(CONTENT) - 1)
    https.files["/pages"] = CONTENT
    https.fault = lambda path, number: None if states_length else ENDLESS
    with pytest.raises(RawDataError, match=r"pages sends [\d,]+ bytes, and at most 2,999,999"):
        fetch_address(origin(https, "pages"), tmp_path / "pages")
    assert [name for name in files_in(tmp_path) if not name.endswith(".version")] == []


def test_a_port_that_nobody_listens_on_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match=r"does not answer \(.*refused.*in 8 attempts"):
        fetch_address("https://127.0.0.1:9/a", tmp_path / "a")
    assert files_in(tmp_path) == []


def test_what_was_fetched_before_is_not_fetched_again(tmp_path: Path) -> None:
    address = "https://127.0.0.1:9/CoLA.zip"
    with pytest.raises(RawDataError):
        fetch_once(address, tmp_path)
    kept = copy_path(address, tmp_path)
    assert kept.name == "CoLA.zip"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(b"x")
    assert fetch_once(address, tmp_path) == kept


def test_an_object_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="s3:// cannot be fetched .*check the address"):
        fetch_address("s3://", tmp_path / "pages.wet.gz")
    assert files_in(tmp_path) == []
