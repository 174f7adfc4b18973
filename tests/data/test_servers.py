"""Files come over real connections: https with a certificate, stores by S3's and Google's API."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import BUSY, CUT, HERE, Server, no_fault, origin, serving

from t5repro.config.sections.data import DataStage
from t5repro.data import transfer
from t5repro.data.check import check
from t5repro.data.fetch import fetch
from t5repro.data.transfer import fetch_address
from t5repro.errors import RawDataError
from t5repro.jobs.corpus import DataJob, FetchJob


def settings(server: Server, folder: Path, files: dict[str, bytes]) -> DataStage:
    named = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    source = {"origin": origin(server, "CoLA.zip"), "licence": "none", "files": named}
    data = {"folder": str(folder), "source": "", "download": True, "sources": [source]}
    return DataStage.model_validate({"data": data})


FILES = {
    "glue/CoLA/train.tsv": b"a\t1\t\tIt rains.\n",
    "glue/CoLA/dev.tsv": b"b\t0\t*\tRains it.\n",
}


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for name, data in FILES.items():
            opened.writestr(name.removeprefix("glue/"), data)
    return buffer.getvalue()


def test_an_archive_is_fetched_once_over_https_and_its_members_are_checked(
    https: Server, tmp_path: Path
) -> None:
    https.files["/CoLA.zip"] = archive()
    stage = settings(https, tmp_path / "data", FILES)
    fetch(FetchJob(stage, downloads=tmp_path / "downloads"))
    check(DataJob(stage, manifest=tmp_path / "manifest.json"))
    assert {name: (tmp_path / "data" / name).read_bytes() for name in FILES} == FILES
    assert https.asked == {"/CoLA.zip": 1}


def test_an_archive_that_is_not_the_named_one_stops_the_run(https: Server, tmp_path: Path) -> None:
    https.files["/CoLA.zip"] = archive()
    stage = settings(https, tmp_path / "data", FILES | {"glue/CoLA/dev.tsv": b"other rows"})
    with pytest.raises(RawDataError, match=r"CoLA/dev.tsv.* has sha256 .*, the run file expects"):
        fetch(FetchJob(stage, downloads=tmp_path / "downloads"))


def test_a_transfer_that_breaks_off_is_continued_by_the_next_run(
    https: Server, tmp_path: Path
) -> None:
    https.files["/CoLA.zip"] = archive()
    https.fault = lambda path, number: CUT if number == 1 else BUSY
    stage = settings(https, tmp_path / "data", FILES)
    with pytest.raises(RawDataError, match=r"CoLA.zip answers with status 503 .* run again"):
        fetch(FetchJob(stage, downloads=tmp_path / "downloads"))
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".tsv"] == []
    https.fault = no_fault
    fetch(FetchJob(stage, downloads=tmp_path / "downloads"))
    assert (tmp_path / "data/glue/CoLA/train.tsv").read_bytes() == FILES["glue/CoLA/train.tsv"]
    assert https.sent == len(archive())


def test_a_certificate_that_nobody_vouches_for_is_refused(
    https: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(RawDataError, match="does not answer .*certificate"):
        fetch_address(origin(https, "CoLA.zip"), tmp_path / "CoLA.zip")
    assert not (tmp_path / "CoLA.zip").exists()


def test_an_object_of_an_s3_compatible_store_arrives_whole(store: Server, tmp_path: Path) -> None:
    page = b"WARC/1.0\r\n" * 300_000
    store.files["/commoncrawl/crawl-data/0.warc.wet.gz"] = page
    fetch_address("s3://commoncrawl/crawl-data/0.warc.wet.gz", tmp_path / "0.warc.wet.gz")
    assert (tmp_path / "0.warc.wet.gz").read_bytes() == page


def test_an_object_that_the_store_does_not_have_is_named(store: Server, tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"s3://commoncrawl/none cannot be fetched"):
        fetch_address("s3://commoncrawl/none", tmp_path / "none")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def google() -> Iterator[Server]:
    """What speaks as much of Google's JSON API as reading an object needs."""
    with serving(Server()) as server:
        yield server


def object_path(name: str) -> str:
    return f"/storage/v1/b/bucket/o/{name.replace('/', '%2F')}?alt=media"


def google_address(server: Server, name: str) -> str:
    options = f"scheme=http&endpoint_override={HERE}:{server.server_port}"
    return f"gs://anonymous@bucket/{name}?{options}"


def test_an_object_of_google_cloud_storage_arrives_whole(google: Server, tmp_path: Path) -> None:
    page = b"WARC/1.0\r\n" * 300_000
    google.files[object_path("crawl-data/0.warc.wet.gz")] = page
    fetch_address(google_address(google, "crawl-data/0.warc.wet.gz"), tmp_path / "0.warc.wet.gz")
    assert (tmp_path / "0.warc.wet.gz").read_bytes() == page


def test_an_object_that_google_cloud_storage_does_not_have_is_named(
    google: Server, tmp_path: Path
) -> None:
    with pytest.raises(RawDataError, match=r"gs://.*bucket/none.* cannot be fetched"):
        fetch_address(google_address(google, "none"), tmp_path / "none")
    assert not list(tmp_path.iterdir())


def test_a_store_of_google_that_stays_busy_is_asked_again_and_then_given_up(
    google: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "TIMEOUT_SECONDS", 5)
    google.fault = lambda path, number: BUSY
    with pytest.raises(RawDataError, match=r"0.gz.* cannot be fetched .*Retry policy exhausted"):
        fetch_address(google_address(google, "0.gz"), tmp_path / "0.gz")
    assert google.asked[object_path("0.gz")] > 1
    assert not list(tmp_path.iterdir())
