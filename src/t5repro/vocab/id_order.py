"""The order of ids in our rows, and in a vocabulary of another library.

Ours begins with padding, EOS and unknown, and the special pieces follow the last id, so that every
network, objective and loss has them in one place. Another vocabulary has them anywhere: its ids are
moved when text is encoded, and its weights when they are imported; both are moved back in exports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from t5repro.array_types import Array, Int64
from t5repro.config.sections.vocab import LANES, SPECIAL_PIECES
from t5repro.vocab.special_ids import EOS_ID, FIRST_PIECE_ID, PAD_ID, UNK_ID
from t5repro.vocab.special_pieces import special_id

FIRST_IDS = {"pad": PAD_ID, "eos": EOS_ID, "unk": UNK_ID}
ROLES = (*FIRST_IDS, *SPECIAL_PIECES)  # what a token can be, other than text


class IdOrder(Protocol):
    """Moves ids and rows of weights between our order and another one."""

    @property
    def foreign_ids(self) -> int | None:
        """Number of ids in the other order; None if it is ours."""
        ...

    def foreign_id(self, number: int) -> int | None:
        """Return the other id of one of ours; None if it has none."""
        ...

    def to_ours(self, array: Array, axis: int = 0) -> Array:
        """Return an array with its rows along an axis in our order; ids without a row have 0."""
        ...

    def to_foreign(self, array: Array, axis: int = 0) -> Array:
        """Return an array in the other order."""
        ...


class SameOrder:
    """The order of a vocabulary that has T5's, as SentencePiece writes it for this project."""

    foreign_ids = None

    def foreign_id(self, number: int) -> int | None:
        """Return the id."""
        return number

    def to_ours(self, array: Array, axis: int = 0) -> Array:
        """Return the array."""
        return array

    def to_foreign(self, array: Array, axis: int = 0) -> Array:
        """Return the array."""
        return array


@dataclass(frozen=True)
class MovedOrder:
    """The order of another vocabulary.

    Attributes:
        ours: our id of each of its ids, ``(foreign_ids,)``.
        total_ids: ids of ours that stand for text, padding, EOS and unknown; ids without a piece
            may be among the last ones, so that the embedding has free rows for special pieces.
    """

    ours: Int64
    total_ids: int

    @classmethod
    def of_roles(cls, foreign_ids: int, roles: Mapping[str, int]) -> "MovedOrder":
        """Return the order of a vocabulary.

        Args:
            foreign_ids: number of its ids.
            roles: role -> its id, of `ROLES` that it has.
        """
        text = np.setdiff1d(np.arange(foreign_ids), list(roles.values()))
        total_ids = FIRST_PIECE_ID + len(text)
        if (free := -total_ids % LANES) < len(SPECIAL_PIECES):
            total_ids += free + 1
        ours = np.empty(foreign_ids, np.int64)
        ours[text] = FIRST_PIECE_ID + np.arange(len(text))
        for role, number in roles.items():
            is_first = role in FIRST_IDS
            ours[number] = FIRST_IDS[role] if is_first else special_id(role, total_ids)
        return cls(ours, total_ids)

    def with_rows(self, numbers: Sequence[int]) -> "MovedOrder":
        """Return the order with ids of ours at its end, where it lacks them."""
        new = [number for number in numbers if self.foreign_id(number) is None]
        return MovedOrder(np.append(self.ours, np.array(new, np.int64)), self.total_ids)

    @property
    def foreign_ids(self) -> int:
        """Number of ids in the other order."""
        return len(self.ours)

    @cached_property
    def _foreign(self) -> dict[int, int]:
        return {number: foreign for foreign, number in enumerate(self.ours.tolist())}

    def foreign_id(self, number: int) -> int | None:
        """Return the other id of one of ours; None if it has none."""
        return self._foreign.get(number)

    def to_ours(self, array: Array, axis: int = 0) -> Array:
        """Return an array with its rows along an axis in our order; ids without a row have 0.

        Args:
            array: a row along `axis` for each id of the other vocabulary.
            axis: the axis of the ids.
        """
        rows = -(-self.total_ids // LANES) * LANES
        shape = [*array.shape[:axis], rows, *array.shape[axis + 1 :]]
        moved = np.zeros(shape, array.dtype)
        moved[(slice(None),) * axis + (self.ours,)] = array
        return moved

    def to_foreign(self, array: Array, axis: int = 0) -> Array:
        """Return an array in the other order; rows of ours that it lacks are left out."""
        return np.take(array, self.ours, axis=axis)
