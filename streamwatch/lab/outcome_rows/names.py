"""Numbers of models and classes in a file's rows, and how their names are written there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from streamwatch.core.vocabulary import Names
from streamwatch.edge.decoders.scanner.inputs import Tables
from streamwatch.edge.decoders.scanner.tokens import Tokens
from streamwatch.lab.outcome_rows.lines import Known
from streamwatch.lab.outcome_rows.scan import LABEL, MODEL, PREDICTION
from streamwatch.lab.recordings.fitting import Both

_NO_TOKENS: Final = Tokens()


class OutcomeNames:
    """Learns names as outcomes bring them.

    Parameters
    ----------
    model
        Of all rows; None where they tell.
    """

    def __init__(self, model: str | None) -> None:
        self._models, self._classes = Names(), Names()
        self._tokens = {role: Tokens() for role in (MODEL, PREDICTION, LABEL)}
        self._met = {role: set[bytes]() for role in (MODEL, PREDICTION, LABEL)}
        self._model = -1 if model is None else self._models.number(model)
        self.is_full = False
        """Whether there were more names than numbers."""

    @property
    def models(self) -> Sequence[str]:
        """Names of models by number."""
        return self._models.names

    @property
    def classes(self) -> Sequence[str]:
        """Names of classes by number."""
        return self._classes.names

    def known(self) -> Known:
        """Names met so far, for a compiled reader."""
        models, predicted, true = (self._tokens[role].table for role in (MODEL, PREDICTION, LABEL))
        return Known(Tables(models, predicted, true, _NO_TOKENS.table), self._model)

    def note(self, row: np.void, both: Both, tokens: Mapping[int, bytes]) -> bool:
        """Write the numbers of an outcome's names; whether one was not known as it is written."""
        prediction, label = both
        learned = False
        for role, column, names, name in (
            (MODEL, "model", self._models, prediction.model),
            (PREDICTION, "predicted_class", self._classes, prediction.predicted_class),
            (LABEL, "true_class", self._classes, label.true_class),
        ):
            row[column] = number = names.number(name)
            self.is_full |= number < 0
            token = tokens.get(role)
            if token is not None and token not in self._met[role] and number >= 0:
                self._met[role].add(token)
                self._tokens[role].learn(token, number)
                learned = True
        return learned
