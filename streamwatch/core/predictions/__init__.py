"""Kinds of prediction registers: state of models from their predictions as they arrive, before any label.

To add a kind, add a module or package with a specification and a register, and one line in `KINDS`. Its
state in every commit, its series, and its details in the API are derived from that. Results must not depend
on how a stream is cut or resumed, nor on which join is used.
"""

from __future__ import annotations

from streamwatch.core.predictions.early_hints import EARLY_HINTS
from streamwatch.core.predictions.kind import PredictionRegisterKind
from streamwatch.core.predictions.label_delays import LABEL_DELAYS
from streamwatch.core.predictions.sampled_labels import SAMPLED_LABELS

__all__ = ["KINDS", "PredictionRegisterKind"]

KINDS: tuple[PredictionRegisterKind, ...] = (EARLY_HINTS, LABEL_DELAYS, SAMPLED_LABELS)
