"""What a model's record says otherwise than the plain rule."""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose

import numpy as np

from streamwatch.core.estimators.registers.cohorts.state import (
    CONFIRMED,
    EARLY,
    FAST_RULE,
    OPEN,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
)
from tests.core.estimators.registers.cohorts.naive_cohorts import AGES, OPPONENTS, NaiveCohorts

STATUS = {"": OPEN, "early": EARLY, "confirmed": CONFIRMED, "complete": CONFIRMED}


def rule_of(parameters) -> int:
    if parameters.status == "early":
        return SETTLED_RULE
    return WHOLE_HORIZON if parameters.age == AGES - 1 else FAST_RULE


def close(own: Iterable[float], plain: Iterable[float]) -> bool:
    """Whether sums are the same but for the order in which they were added."""
    return all(isclose(a, b, rel_tol=1e-6) for a, b in zip(own, plain, strict=True))


def differences(register, naive: NaiveCohorts) -> list[str]:
    """What a model's record says otherwise than the plain rule."""
    m = register.taken_in([0]).models[0]
    cohorts = [*naive.closed, *([naive.current] if naive.current else [])]
    first, after = int(m["first_cohort"]), int(m["next_cohort"])
    own_cohorts = m["cohorts"][np.arange(first, after) % SLOTS]
    closed = own_cohorts[: len(naive.closed)]
    pairs: dict[str, tuple[object, object]] = {
        "judged": (int(m["judged"]), naive.judged),
        "openings": (own_cohorts["opened_ms"].tolist(), [c.opened for c in cohorts]),
        "ages": (own_cohorts["age_ms"].tolist(), [naive.ages[c.parameters.age] for c in cohorts]),
        "rules": (own_cohorts["rule"].tolist(), [rule_of(c.parameters) for c in cohorts]),
        "ends": (closed["ended_ms"].tolist(), [c.end for c in naive.closed]),
        "predictions": (closed["predictions"].tolist(), [c.n for c in naive.closed]),
    }
    for record, name in zip(m["opponents"], OPPONENTS, strict=True):
        own, plain = dict(zip(record.dtype.names, record.tolist(), strict=True)), naive.opponents[name]
        pairs[f"{name} verdict"] = (
            (own["verdict"], own["status"], own["changes"], own["retracted"]),
            (plain.verdict, STATUS[plain.status], plain.changes, plain.retracted),
        )
        pairs[f"{name} started"] = (bool(own["started"]), plain.started)
        if plain.verdict:
            pairs[f"{name} since"] = (own["since_ms"], plain.since)
        earliest, latest = plain.between or (None, 0)
        pairs[f"{name} between"] = ((own["earliest_ms"], own["latest_ms"]), (earliest or 0, latest))
        same = isclose(max(own["dispersion"], 1.0), plain.phi, rel_tol=1e-9)
        pairs[f"{name} dispersion"] = (same, True)
        for side, evidence in ((0, plain.better), (1, plain.worse)):
            pairs[f"{name} evidence {side}"] = (close(own["sums"][side].tolist(), evidence.m), True)
        if plain.started:
            pairs[f"{name} wealth"] = (close(own["wealth"][0].tolist(), plain.worse.wealth), True)
    if naive.judged % 8 == 0:  # whole lists are slow
        stretches = m["stretches"][: int(m["bounds"])]
        errors = np.column_stack([stretches["weights"], stretches["weight_squares"]])
        plain_errors = np.array(naive.errors_by_stretch()).reshape(-1, 4)
        pairs["errors"] = (errors.shape == plain_errors.shape and np.allclose(errors, plain_errors), True)
    return [f"{what}: {own}, not {plain}" for what, (own, plain) in pairs.items() if own != plain]
