"""Limit the memory that a long job keeps after freeing it."""

import ctypes

_TRIM_THRESHOLD = -1  # glibc's M_TRIM_THRESHOLD
_KEPT_BYTES = 1 << 24


def return_freed_memory() -> None:
    """Make the C library return freed memory to the system, except for 16 MB.

    glibc raises this limit whenever a large block is freed. Pages have all sizes, so a process grew
    by two thirds over forty WET files; an explicit limit stays fixed (``man mallopt``). C libraries
    without this call are left unchanged.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
