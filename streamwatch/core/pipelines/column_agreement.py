"""Predicted and true classes of models (`join.mismatch`), observed in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.core.join.mismatch import AgreementState, ClassAgreement
from streamwatch.core.outcomes import OutcomeBatch


class ColumnAgreement:
    """`ClassAgreement` that is shown no outcomes of models known to share a class with their labels.

    Parameters
    ----------
    max_models
        Number of models whose classes are compared.
    """

    __slots__ = ("_names", "_settled", "_version", "classes")

    def __init__(self, max_models: int) -> None:
        self.classes = ClassAgreement(max_models)
        """Classes of each model."""
        self._settled = np.zeros(0, np.bool_)  # by model number
        self._names: Sequence[str] = ()
        self._version = 0

    def observe(self, outcomes: OutcomeBatch, version: int) -> None:
        """Take in the classes of outcomes, in order.

        `version` changes whenever a model number gets another name.
        """
        names = outcomes.models
        if self._names is not names or self._version != version or len(self._settled) < len(names):
            self._names, self._version = names, version
            self._settled = np.zeros(2 * len(names), np.bool_)
        numbers = outcomes.records["model"]
        is_open = ~self._settled[numbers]
        if is_open.any():
            self.classes.observe(outcomes.only(is_open))
            for number in np.unique(numbers[is_open]).tolist():
                self._settled[number] = self.classes.is_settled(names[int(number)])

    def forget(self, model: str) -> None:
        """Drop a model that retired; if it comes back, it is examined anew."""
        self.classes.forget(model)
        self._settled[:] = False

    def restore(self, state: AgreementState) -> None:
        """Continue from the state of `classes`."""
        self.classes.restore(state)
        self._settled = np.zeros(0, np.bool_)
