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
    pairs: dict[str, tuple[object, object]] = {
        "counts": (
            [int(m[name]) for name in ("observed", "made", "judged_predictions", "age_changes")],
            [naive.labels, naive.made, naive.judged_predictions, naive.age_changes],
        ),
        "judged": (int(m["judged"]), naive.judged),
        "cohorts": (int(m["next_cohort"] - m["first_cohort"]), len(cohorts)),
    }
    for k, cohort in enumerate(cohorts):
        slot = int(m["first_cohort"] + k) % SLOTS
        own = m["cohorts"][slot]
        pairs[f"cohort {k}"] = (
            (int(own["opened_ms"]), int(own["age_ms"]), int(own["rule"])),
            (cohort.opened, naive.ages[cohort.parameters.age], rule_of(cohort.parameters)),
        )
        if cohort.end is not None:
            pairs[f"closed {k}"] = (
                (int(own["ended_ms"]), int(own["predictions"])),
                (cohort.end, cohort.n),
            )
    for j, name in enumerate(OPPONENTS):
        own, plain = m["opponents"][j], naive.opponents[name]
        pairs[f"{name} verdict"] = (
            (int(own["verdict"]), int(own["status"]), int(own["changes"]), int(own["retracted"])),
            (plain.verdict, STATUS[plain.status], plain.changes, plain.retracted),
        )
        pairs[f"{name} started"] = (bool(own["started"]), plain.started)
        lead = [float(own[field]) for field in ("judged", "predictions", "total", "squares")]
        pairs[f"{name} lead"] = (np.allclose(lead, naive.since_change(name)), True)
        if plain.verdict:
            pairs[f"{name} since"] = (int(own["since_ms"]), plain.since)
        earliest, latest = plain.between or (None, 0)
        pairs[f"{name} between"] = ((int(own["earliest_ms"]), int(own["latest_ms"])), (earliest or 0, latest))
        same = isclose(max(float(own["dispersion"]), 1.0), plain.phi, rel_tol=1e-9)
        pairs[f"{name} dispersion"] = (same, True)
        for side, evidence in ((0, plain.better), (1, plain.worse)):
            pairs[f"{name} evidence {side}"] = (close(own["sums"][side].tolist(), evidence.m), True)
        if plain.started:
            pairs[f"{name} wealth"] = (close(own["wealth"][0].tolist(), plain.worse.wealth), True)
    stretches = m["stretches"][: int(m["bounds"])]
    errors = np.column_stack([stretches["weights"], stretches["weight_squares"]])
    if naive.judged % 8 == 0:  # whole lists are slow
        plain_errors = np.array(naive.errors_by_stretch()).reshape(-1, 4)
        pairs["errors"] = (errors.shape == plain_errors.shape and np.allclose(errors, plain_errors), True)
        leads = m["leads"][: int(m["bounds"])]
        for j, name in enumerate(OPPONENTS):
            own = np.column_stack([leads["predictions"], leads["totals"][:, j], leads["squares"][:, j]])
            plain_leads = np.array(naive.leads_by_stretch(name)).reshape(-1, 3)
            pairs[f"{name} leads"] = (own.shape == plain_leads.shape and np.allclose(own, plain_leads), True)
    return [f"{what}: {own}, not {plain}" for what, (own, plain) in pairs.items() if own != plain]
