"""LoRA: the addition to a product from two narrow matrices that train in place of a wide one.

Source: Hu et al., 2021; Keras ``Dense.enable_lora`` for names, precision and scale.

Shape suffixes: D features before the product, F after it, R the rank.
"""

from dataclasses import dataclass
from typing import Any

from t5repro.errors import SettingsError

DEFAULT_MATRICES = ("q", "v")  # section 5.1: queries and values


@dataclass(frozen=True)
class Lora:
    """The narrow matrices of a layer.

    Attributes:
        rank: inner width; features.
        alpha: the product with the narrow matrices is multiplied by `alpha` / `rank`.
        matrices: names of the wide matrices.
    """

    rank: int
    alpha: float
    matrices: tuple[str, ...]

    @property
    def scale(self) -> float:
        """The factor of the product."""
        return self.alpha / self.rank

    @classmethod
    def of_arguments(cls, rank: Any, alpha: float | None, matrices: Any) -> "Lora":
        """Return the arguments of `enable_lora`, checked.

        Raises:
            SettingsError: the rank is not a positive integer, or there are no matrices.
        """
        if not isinstance(rank, int) or rank < 1 or not matrices:
            raise SettingsError(
                f"enable_lora(rank={rank!r}, matrices={matrices!r}): give a rank of at least 1, "
                "such as 8, and the names of matrices, such as ('q', 'v')"
            )
        return cls(rank, float(rank if alpha is None else alpha), tuple(matrices))


def names_of(matrix: str) -> tuple[str, str]:
    """Return the names of the narrow matrices, (D, R) and (R, F)."""
    return f"{matrix}_lora_a", f"{matrix}_lora_b"
