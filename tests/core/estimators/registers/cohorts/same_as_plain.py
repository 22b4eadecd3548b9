"""What a model's record says otherwise than the plain rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isclose

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.cohorts.settled import LEAD_UNIT
from streamwatch.core.estimators.registers.cohorts.state import (
    CONFIRMED,
    EARLY,
    FAST_RULE,
    OPEN,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
)
from tests.core.estimators.registers.cohorts.naive_cohorts import (
    AGES,
    OPPONENTS,
    POOLED_HITS,
    POOLED_MISSES,
    NaiveCohorts,
    accuracy,
)

STATUS = {"": OPEN, "early": EARLY, "confirmed": CONFIRMED, "complete": CONFIRMED}


def rule_of(parameters) -> int:
    if parameters.status == "early":
        return SETTLED_RULE
    return WHOLE_HORIZON if parameters.age == AGES - 1 else FAST_RULE


def close(own: Iterable[float], plain: Iterable[float]) -> bool:
    """Whether sums are the same but for the order in which they were added."""
    return all(isclose(a, b, rel_tol=1e-6) for a, b in zip(own, plain, strict=True))


def same(own: NDArray[np.float64], plain: Sequence[tuple[float, ...]]) -> bool:
    """Whether rows of sums are the same but for the order in which they were added."""
    rows = np.array(plain).reshape(-1, own.shape[1])
    return own.shape == rows.shape and np.allclose(own, rows, atol=1e-6)


def _sums(m, naive: NaiveCohorts) -> Iterator[tuple[str, bool]]:
    """Sums of a model's record by opponent, and whether the plain rule has them, too."""
    stretches, leads = m["stretches"][: int(m["bounds"])], m["leads"][: int(m["bounds"])]
    for j, name in enumerate(OPPONENTS):
        of_cohorts = np.column_stack([leads["predictions"], leads["totals"][:, j], leads["squares"][:, j]])
        yield f"{name} leads", same(of_cohorts, naive.leads_by_stretch(name))
        unit = 1 if naive.utility is accuracy else LEAD_UNIT
        in_units = [stretches[each][:, j] / unit for each in ("leads", "lead_squares")]
        of_outcomes = np.column_stack([stretches["outcomes"][:, j], *in_units])
        yield f"{name} outcomes", same(of_outcomes, naive.outcomes_by_stretch(name))
        own = m["opponents"][j]
        since = np.array([[own["judged"], own["predictions"], own["total"], own["squares"]]])
        yield f"{name} lead", same(since, [naive.since_change(name)])
        claimed = naive.claimed(name)
        claim = np.array([[own[f"claim_{each}"] for each in ("outcomes", "total", "squares")]])
        yield f"{name} claim", claimed is None or same(claim, [claimed])


def _settled_sums(m, records, naive: NaiveCohorts) -> Iterator[tuple[str, bool]]:
    """Faded sums of settled outcomes by kind, and whether the plain rule has them, too."""
    classes = records["sums"]
    for (label, is_hit), size in naive.lead_sizes.items():
        own = records["lead_sizes"][len(classes) - 1 if label == "others" else label, 0 if is_hit else 1]
        yield f"sizes of leads {label} {is_hit}", isclose(own / m["settled_unit"], size, rel_tol=1e-5)
    for kind, plain in naive.settled.items():
        of_class = len(classes) - 1 if kind[0] == "others" else kind[0]
        own = m["pooled"] if kind in {POOLED_HITS, POOLED_MISSES} else classes[of_class]
        side = 0 if kind[1] else 1
        totals = np.array([[own["totals"][side], own["totals_squared"][side]]])
        by_age = np.column_stack([own[each][side] for each in ("early", "early_squared", "early_totals")])
        plain_by_age = list(zip(plain.by_age, plain.by_age_squared, plain.by_age_total, strict=True))
        yield (
            f"settled {kind}",
            same(totals / m["settled_unit"], [(plain.total, plain.total_total)])
            and same(by_age / m["settled_unit"], plain_by_age),
        )


def differences(register, naive: NaiveCohorts, *, short: bool = False) -> list[str]:
    """What a model's record says otherwise than the plain rule; all sums, too, if it is `short`."""
    m = register.taken_in([0]).models[0]
    cohorts = [*naive.closed, *([naive.current] if naive.current else [])]
    first, after = int(m["first_cohort"]), int(m["next_cohort"])
    own_cohorts = m["cohorts"][np.arange(first, after) % SLOTS]
    closed = own_cohorts[: len(naive.closed)]
    pairs: dict[str, tuple[object, object]] = {
        "counts": (
            [int(m[name]) for name in ("observed", "made", "judged_predictions", "age_changes")],
            [naive.labels, naive.made, naive.judged_predictions, naive.age_changes],
        ),
        "judged": (int(m["judged"]), naive.judged),
        "openings": (own_cohorts["opened_ms"].tolist(), [c.opened for c in cohorts]),
        "ages": (own_cohorts["age_ms"].tolist(), [naive.ages[c.parameters.age] for c in cohorts]),
        "rules": (own_cohorts["rule"].tolist(), [rule_of(c.parameters) for c in cohorts]),
        "ends": (closed["ended_ms"].tolist(), [c.end for c in naive.closed]),
        "predictions": (closed["predictions"].tolist(), [c.n for c in naive.closed]),
    }
    missing = [cohort.parameters.missing for cohort in cohorts]
    pairs["missing"] = (np.allclose(own_cohorts["missing"], missing, rtol=1e-9, atol=0.0), True)
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
        same_dispersion = isclose(max(own["dispersion"], 1.0), plain.phi, rel_tol=1e-9)
        pairs[f"{name} dispersion"] = (same_dispersion, True)
        for side, evidence in ((0, plain.better), (1, plain.worse)):
            pairs[f"{name} evidence {side}"] = (close(own["sums"][side].tolist(), evidence.m), True)
        if plain.started:
            pairs[f"{name} wealth"] = (close(own["wealth"][0].tolist(), plain.worse.wealth), True)
    if short or naive.judged % 8 == 0:  # whole lists are slow
        stretches = m["stretches"][: int(m["bounds"])]
        errors = np.column_stack([stretches["weights"], stretches["weight_squares"]])
        pairs["errors"] = (same(errors, naive.errors_by_stretch()), True)
    if short:
        sums = *_sums(m, naive), *_settled_sums(m, register.taken_in([0]).classes[:, 0], naive)
        pairs |= {what: (said, True) for what, said in sums}
    return [f"{what}: {own}, not {plain}" for what, (own, plain) in pairs.items() if own != plain]
