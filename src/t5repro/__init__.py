"""T5 rebuilt from the crawl up, with a record behind every number."""

from t5repro import cpu_dispatch

cpu_dispatch.fix()  # before any module imports NumPy

__version__ = "0.1.0"
