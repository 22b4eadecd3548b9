"""Early hints: changes among predictions (shares of classes, scores) found before their labels come."""

from __future__ import annotations

from streamwatch.core.predictions.early_hints.observe import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.register import EarlyHints
from streamwatch.core.predictions.kind import PredictionRegisterKind

__all__ = ["EARLY_HINTS", "EarlyHints", "EarlyHintsSpec"]

EARLY_HINTS = PredictionRegisterKind("early_hints", EarlyHintsSpec, EarlyHints)
