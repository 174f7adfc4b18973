"""FastWARC: read every record of a WET file and decode its text."""

import json
import sys
import time
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType


def read(path: Path) -> dict[str, float]:
    """Decompress, split into records, take address, date and text."""
    begin = time.perf_counter()
    pages = 0
    with path.open("rb") as handle:
        for record in ArchiveIterator(handle, record_types=WarcRecordType.conversion):
            record.headers.get("WARC-Target-URI"), record.headers.get("WARC-Date")
            record.reader.read().decode("utf-8", "replace")
            pages += 1
    return {"seconds": time.perf_counter() - begin, "pages": pages}


if __name__ == "__main__":
    print(json.dumps(read(Path(sys.argv[2]))))
