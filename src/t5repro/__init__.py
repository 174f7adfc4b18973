"""T5 rebuilt from the crawl up, with a record behind every number.

``t5repro.load("results/demo")`` opens a finished run in Python (docs/predict.md).
"""

import importlib
from typing import Any

from t5repro import cpu_dispatch

cpu_dispatch.fix()  # before any module imports NumPy

__version__ = "0.2.0"
_PUBLIC = {
    "Model": "t5repro.inference.model",
    "Prediction": "t5repro.inference.model",
    "Run": "t5repro.inference.run",
    "load": "t5repro.inference.load",
    "load_model": "t5repro.inference.load",
    "load_network": "t5repro.inference.load",
}
__all__ = ["Model", "Prediction", "Run", "load", "load_model", "load_network"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for.

    An import statement here would make these modules the code of every rule: each imports this
    package (lineage/sources.py).
    """
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 't5repro' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
