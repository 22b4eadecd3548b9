"""Kinds of registers: state of every model outside the kernel's table, computed from the same outcomes.

To add a kind, add a module or package beside `kind.py` and one line to `KINDS`. Its section in every model's
snapshot, its series, its details in the API, and the messages about its state at a start are
derived from that. The contract tests run over `KINDS`: results must not depend on how a stream is cut,
ordered among models, or resumed, and the state of a retired model must be dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.estimators.registers.cohorts import COHORTS
from streamwatch.core.estimators.registers.kind import Register, RegisterKind
from streamwatch.core.estimators.registers.late_labels.register import KIND as LATE_LABELS
from streamwatch.core.estimators.registers.prediction_clock import PREDICTION_CLOCK
from streamwatch.core.estimators.registers.probabilities import PROBABILITIES
from streamwatch.core.estimators.registers.revisions import REVISIONS
from streamwatch.core.estimators.registers.segments import SEGMENTS
from streamwatch.core.specs import MonitorsSpec

__all__ = ["KINDS", "Register", "RegisterKind", "names_of", "registers_of"]

KINDS: tuple[RegisterKind, ...] = (
    LATE_LABELS,
    PROBABILITIES,
    SEGMENTS,
    REVISIONS,
    PREDICTION_CLOCK,
    COHORTS,
)


def names_of(spec: MonitorsSpec) -> Sequence[str]:
    """Names of the kinds of the specifications in `spec.registers`, in their order."""
    return [kind.name for kind in _kinds_of(spec)]


def registers_of(spec: MonitorsSpec) -> Sequence[Register]:
    """Build an empty register for each specification in `spec.registers`, in their order.

    Raises
    ------
    ValueError
        If two specifications are of the same kind.
    """
    chosen = _kinds_of(spec)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"registers must be of different kinds, got {[kind.name for kind in chosen]}")
    return [kind.build(wanted, spec.max_models) for kind, wanted in zip(chosen, spec.registers, strict=True)]


def _kinds_of(spec: MonitorsSpec) -> Sequence[RegisterKind]:
    by_spec = {kind.spec: kind for kind in KINDS}
    return [by_spec[type(wanted)] for wanted in spec.registers]
