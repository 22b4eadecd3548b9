"""Compilation of the prediction registers' functions before they are needed, or their loading."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.events import Outcome, Prediction
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.specs import RegisterSpec


def warm_up_predictions(specs: Sequence[RegisterSpec]) -> None:
    """Process a prediction and its outcome in registers of these specifications, to call every function."""
    registers = PredictionRegisters(specs)
    scores = {"a": 0.9, "b": 0.1}
    registers.observe_events([Prediction("0", "warm-up", "a", 0, scores=scores)])
    registers.learn([Outcome("warm-up", "a", "a", 0, 0, scores=scores)])
