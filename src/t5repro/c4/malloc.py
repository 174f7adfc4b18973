"""Keep the peak of a long job where it is for a short one."""

import ctypes

_TRIM_THRESHOLD = -1  # glibc's M_TRIM_THRESHOLD
_KEPT_BYTES = 1 << 24


def return_freed_memory() -> None:
    """Have the C library give freed memory back to the system, all but sixteen megabytes.

    glibc raises that limit by itself whenever a large block is freed; pages are of all sizes, and
    over forty WET files a process grew by two thirds. Setting the limit ends that (``man
    mallopt``). Other C libraries have no such call and are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
