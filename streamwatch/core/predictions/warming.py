"""Compiling prediction registers before they are needed, or loading what was compiled before."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.events import Outcome, Prediction
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.specs import RegisterSpec


def warm_up_predictions(specs: Sequence[RegisterSpec]) -> None:
    """Tell registers of these specifications a prediction and its outcome: everything is called then."""
    registers = PredictionRegisters(specs)
    scores = {"a": 0.9, "b": 0.1}
    registers.observe_events([Prediction("0", "warm-up", "a", 0, scores=scores)])
    registers.learn([Outcome("warm-up", "a", "a", 0, 0, scores=scores)])
