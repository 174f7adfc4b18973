"""How closely training and prediction repeat on another machine (docs/decisions/D-043)."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import AddedLayers, ModelSettings

Reproducibility = Literal["exact", "exact on one kind of CPU", "tolerance"]
EXACT: Final = "exact"
ONE_KIND_OF_CPU: Final = "exact on one kind of CPU"
TOLERANCE: Final = "tolerance"

# oneDNN chooses the number of threads of a product by the size of the L2 cache. With two threads it
# divides the columns of a product that is wider than this, which changes no bit. It divides the
# rows of a narrower one, and of any product among more threads, which does.
EXACT_THREADS = 2
DIVIDED_BY_COLUMNS_ABOVE = 64


def training_reproducibility(settings: Mapping[str, Any]) -> Reproducibility:
    """Return how closely a job that trains or predicts is repeated.

    Args:
        settings: of the job or of a whole run, as JSON; unknown ones are ignored, because an
            old job may have been given settings that exist no more.
    """
    devices = DevicesSettings.model_construct(**settings.get("devices", {}))
    if devices.kind != "cpu":
        return TOLERANCE
    is_plain = devices.precision == "float32" and devices.instruction_set == "avx2"
    if not is_plain or devices.engine != "tensorflow":  # XLA's own loops were not compared
        return ONE_KIND_OF_CPU
    is_wide = min(_widths(settings)) > DIVIDED_BY_COLUMNS_ABOVE
    threads = EXACT_THREADS if is_wide else 1
    return EXACT if devices.intra_op_threads <= threads else ONE_KIND_OF_CPU


def _widths(settings: Mapping[str, Any]) -> list[int]:
    """Return the widths of the products with a weight, without the vocabulary's."""
    model = ModelSettings.model_construct(**settings.get("model", {}))
    added = AddedLayers.model_construct(**settings.get("finetune", {}))
    widths = [model.d_model, model.d_ff, model.num_heads * model.d_kv]
    return widths + [width for width in (added.width, model.embedding_width) if width]
