"""Measures of the class scores that predictions carry: losses, calibration, areas, threshold curves."""

from __future__ import annotations

from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.estimators.registers.probabilities.register import METRICS, Probabilities
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec, probabilities_under

__all__ = ["PROBABILITIES", "ProbabilitiesSpec", "probabilities_under"]

PROBABILITIES = RegisterKind("probabilities", ProbabilitiesSpec, METRICS, Probabilities)
