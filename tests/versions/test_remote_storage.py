"""What a storage cannot move is named before a run starts."""

import pytest

from t5repro.errors import StorageError
from t5repro.versions.remote_storage import upload


@pytest.mark.parametrize("path", ["/raw/crawl/one.wet", "../raw/crawl/one.wet"])
def test_raw_files_outside_of_the_checkout_are_named(path: str) -> None:
    with pytest.raises(StorageError, match=f"{path} is outside of the checkout.*make a link"):
        upload(None, [path])
