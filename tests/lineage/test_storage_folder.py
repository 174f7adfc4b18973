"""A job names the local copies of a storage by their paths in the checkout."""

import pytest

from t5repro.lineage.storage_folder import VARIABLE, checkout_paths

FOLDER = ".snakemake/storage/s3/bucket/prefix"
WORDS = [
    f"{FOLDER}/results/demo/data/manifest.json",
    f"en={FOLDER}/data/lists/badwords.en.txt",
    "data/crawl/one.wet",
    f"text with {FOLDER}/inside",
]


def test_the_folder_of_the_copies_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, FOLDER)
    assert checkout_paths(WORDS) == [
        "results/demo/data/manifest.json",
        "en=data/lists/badwords.en.txt",
        *WORDS[2:],
    ]


def test_words_stay_as_they_are_without_a_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert checkout_paths(WORDS) == WORDS
