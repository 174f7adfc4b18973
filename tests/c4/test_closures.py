"""An edit of one rule's code does not rerun the rules that do not run it."""

import pytest

from t5repro.lineage.sources import source_files
from t5repro.stages import BY_NAME

READING = {"c4/wet/pages.py", "c4/wet/reader.py", "c4/wet/url_filter.py", "data/crawl_lists.py"}
DECIDING = {"c4/deduplicate.py", "c4/dedup/duplicates.py", "c4/dedup/key_rows.py"}
WRITING = {"c4/write.py", "c4/page_filter.py", "c4/page_counts.py", "c4/dedup/shorten.py"}
REMOVALS = {"c4/dedup/removals.py"}
BAD_WORDS = {"c4/text/bad_words.py"}
SENTENCES = {"c4/text/sentences.py"}


@pytest.mark.parametrize(
    ("rule", "required", "forbidden"),
    [
        ("data", {"data/check.py"}, {"data/fetch.py", *READING}),
        ("c4_punkt", READING, {"c4/clean.py", "c4/tables.py", *DECIDING, *REMOVALS, *WRITING}),
        ("c4_clean", {"c4/dedup/spans.py", *READING}, {*DECIDING, *REMOVALS, *WRITING}),
        (
            "c4_dedup",
            {*DECIDING, *REMOVALS},
            {"c4/clean.py", *READING, *BAD_WORDS, *SENTENCES, *WRITING},
        ),
        ("c4", {*REMOVALS, *WRITING, *BAD_WORDS}, {"c4/clean.py", *READING, *DECIDING}),
    ],
)
def test_a_rule_runs_its_own_code_only(rule: str, required: set[str], forbidden: set[str]) -> None:
    files = {name.removeprefix("src/t5repro/") for name in source_files(BY_NAME[rule].module)}
    assert required <= files
    assert forbidden & files == set()
    assert not any(name.startswith("c4/spark/") for name in files)
