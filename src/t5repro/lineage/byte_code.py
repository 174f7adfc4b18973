"""Whether Python would run the byte code of a module or its source.

Python runs ``__pycache__/<module>.pyc`` instead of the source if time and size in its header are
those of the source. Byte code of other instructions under a fitting header runs unseen by every
hash of sources, so it is compared with the source, compiled again.
"""

import importlib.util
import os
import sys
from importlib.machinery import SourcelessFileLoader
from pathlib import Path

HEADER_BYTES = 16  # magic number, flags, time and size of the source (PEP 552)
HASH_BASED = 1  # flag: the header has a hash of the source in place of time and size


def is_forged(source: Path) -> bool:
    """Return whether Python would run byte code that a source file does not compile to."""
    cached = Path(importlib.util.cache_from_source(str(source)))
    try:
        data = cached.read_bytes()
        status = os.stat(source)
        text = source.read_bytes()
    except OSError:
        return False  # without byte code Python compiles the source itself
    header, flags = data[:HEADER_BYTES], int.from_bytes(data[4:8], "little")
    if len(header) < HEADER_BYTES or header[:4] != importlib.util.MAGIC_NUMBER:
        return False  # Python ignores it
    fields = (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    times = (int.from_bytes(header[8:12], "little"), int.from_bytes(header[12:16], "little"))
    if not flags & HASH_BASED and times != fields:
        return False  # older than the source: Python compiles it again
    try:
        expected = compile(
            text, str(source), "exec", dont_inherit=True, optimize=sys.flags.optimize
        )
        # Python's own reader of byte code; reading does not run it.
        actual = SourcelessFileLoader(source.stem, str(cached)).get_code(source.stem)
    except (SyntaxError, ValueError, EOFError, TypeError, ImportError):
        return True
    return actual != expected
