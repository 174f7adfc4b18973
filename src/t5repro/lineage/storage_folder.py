"""Paths of jobs with files that a storage plugin of Snakemake moves.

Snakemake names such a file by its local copy, ``.snakemake/storage/s3/bucket/prefix/results/...``.
`versions.remote_storage` makes that folder a link to the checkout, so a job can use the path of a
local run, and its manifest and record are the same as in a local run.
"""

import os
import re
from collections.abc import Iterable

VARIABLE = "T5REPRO_STORAGE_FOLDER"


def checkout_paths(words: Iterable[str]) -> list[str]:
    """Return the words of a command line with paths relative to the checkout.

    Args:
        words: arguments, such as ``FOLDER/results/demo/report/report.html`` or
            ``en=FOLDER/data/lists/en.txt``; `VARIABLE` names the folder, if a storage is used.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return list(words)
    start = re.compile(rf"(^|=){re.escape(folder)}/")
    return [start.sub(r"\1", word) for word in words]
