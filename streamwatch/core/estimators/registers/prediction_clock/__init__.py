"""Detectors that take outcomes in the order of their predictions (`monitors.detector_clocks`)."""

from __future__ import annotations

from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.estimators.registers.prediction_clock.register import METRICS, PredictionClock
from streamwatch.core.estimators.registers.prediction_clock.spec import PredictionClockSpec

__all__ = ["PREDICTION_CLOCK", "PredictionClockSpec"]

PREDICTION_CLOCK = RegisterKind("prediction_clock", PredictionClockSpec, METRICS, PredictionClock)
