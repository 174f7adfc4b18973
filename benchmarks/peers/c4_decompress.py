"""The floor of reading: decompress every gzip member with ISA-L and do nothing with it."""

import json
import sys
import time
from pathlib import Path

from isal import igzip


def read(path: Path) -> dict[str, float]:
    """Decompress members one after another."""
    begin = time.perf_counter()
    size = 0
    with igzip.open(path) as handle:
        while block := handle.read(1 << 20):
            size += len(block)
    return {"seconds": time.perf_counter() - begin, "text_bytes": size}


if __name__ == "__main__":
    print(json.dumps(read(Path(sys.argv[2]))))
