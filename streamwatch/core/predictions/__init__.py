"""Kinds of prediction registers: what is kept of models' predictions as they arrive, before any label.

A new kind is one room, with a specification and a register of its own, and one line in `KINDS`. From it
follow its state in every commit, its series, and its details in the API. Whoever is in it must not care how a
stream is cut or resumed, nor which join takes it.
"""

from __future__ import annotations

from streamwatch.core.predictions.early_hints import EARLY_HINTS
from streamwatch.core.predictions.kind import PredictionRegisterKind
from streamwatch.core.predictions.label_delays import LABEL_DELAYS

__all__ = ["KINDS", "PredictionRegisterKind"]

KINDS: tuple[PredictionRegisterKind, ...] = (EARLY_HINTS, LABEL_DELAYS)
