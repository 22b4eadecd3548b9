"""Reported values of verdicts by cohorts, as arrays over models and opponents; NaN where undefined."""

from __future__ import annotations

from math import isfinite, log1p, nan, sqrt
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.pools import taken
from streamwatch.core.estimators.registers.cohorts.life import read_headlines
from streamwatch.core.estimators.registers.cohorts.state import (
    CLASSES,
    CONFIRMED,
    EARLY,
    FAST_RULE,
    HEADLINES,
    HITS,
    MISSES,
    OPEN,
    OPPONENTS,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
    State,
)
from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS
from streamwatch.core.estimators.verdicts.readout import LEAST_BLOCKS, RHO_SQUARED
from streamwatch.core.estimators.verdicts.state import BETTER, STAKES, WORSE
from streamwatch.core.records.events import Confirmation

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class CohortVerdicts(NamedTuple):
    """Verdicts by cohorts of m models: (m, 2) by opponent, or (m,) by model; NaN where undefined."""

    verdict: Floats
    """1 better, −1 worse, 0 open; undefined until evidence is kept (see `claims`)."""
    since_seconds: Floats
    """Prediction time from which the verdict holds; undefined until the verdict first changes."""
    earliest_seconds: Floats
    """80 % interval of *since*; `earliest_seconds` is undefined if it may precede the first judged cohort."""
    latest_seconds: Floats
    confirmed: Floats
    """1 for a confirmed verdict, 0 for an early one; undefined where none is held."""
    retracted: Integers
    """Number of early verdicts that were withdrawn."""
    changes: Integers
    """Number of changes of the verdict."""
    better: Floats
    """Evidence from 0 to 1, see `evidence_of`."""
    worse: Floats
    e_value: Floats
    """E-value of the pair in a list of worse models, see `registers.fleet`."""
    lead: Floats
    lower: Floats
    upper: Floats
    dispersion: Floats
    age_seconds: Floats
    """Age of the newest cohort; undefined before the first."""
    judged: Integers
    """Number of cohorts judged."""
    age_changes: Integers
    """Number of times that a cohort got another age than the one before."""
    left_out: Integers
    """Number of buckets and cohorts with more outcomes than are counted."""
    headlines: NDArray[Any]
    """`HEADLINES` records, (m,)."""
    waiting: Integers
    """Number of cohorts that are closed and not judged yet."""


def evidence_of(sums: Floats, threshold: Floats) -> Floats:
    """Evidence max(0, ln(mean M)/ln A) of sums M (…, 8), from 0 to 1 at a claim; A is the `threshold`."""
    return np.log(np.maximum(sums.mean(axis=-1), 1.0)) / np.log(threshold)


def read_cohorts(models: NDArray[Any], rows: Integers, parameters: NDArray[Any]) -> CohortVerdicts:
    """Read the records of some rows.

    Parameters
    ----------
    models
        `MODEL` records.
    rows
        Rows of the models, (m,).
    parameters
        `PARAMETERS` (1,).
    """
    delta, least = float(parameters["delta"][0]), int(parameters["outcomes"][0])
    opponents = taken(models["opponents"], rows)
    judged = models["judged"][rows]
    opened = models["next_cohort"][rows]
    is_open = opened > 0
    decides = np.where(opponents["started"] > 0, 1.0, np.nan)
    status = opponents["status"]
    changes = opponents["changes"].copy()
    needed = 2.0 * np.maximum(least, models["recent"][rows]) / delta
    threshold = np.empty((len(rows), 1, 2))
    threshold[:, 0, BETTER], threshold[:, 0, WORSE] = needed, int(parameters["opponents"][0]) * needed
    evidence = evidence_of(opponents["sums"], threshold)
    dispersion = np.maximum(opponents["dispersion"], 1.0)
    lead, lower, upper = _lead(opponents, dispersion, delta)
    return CohortVerdicts(
        verdict=decides * opponents["verdict"],
        since_seconds=np.where(changes > 0, opponents["since_ms"] / 1000.0, np.nan),
        earliest_seconds=_positive(opponents["earliest_ms"] / 1000.0),
        latest_seconds=_positive(opponents["latest_ms"] / 1000.0),
        confirmed=np.where(status == OPEN, np.nan, (status == CONFIRMED) * 1.0),
        retracted=opponents["retracted"].copy(),
        changes=changes,
        better=decides * evidence[..., BETTER],
        worse=decides * evidence[..., WORSE],
        e_value=decides * opponents["wealth"][:, :, 0].mean(axis=-1),
        lead=lead,
        lower=lower,
        upper=upper,
        dispersion=np.where(judged[:, None] > 0, dispersion, np.nan),
        age_seconds=np.where(is_open, models["last_age_ms"][rows] / 1000.0, np.nan),
        judged=judged,
        age_changes=models["age_changes"][rows],
        left_out=models["left_out"][rows],
        headlines=headlines_of(models, rows, parameters),
        waiting=opened - models["is_open"][rows] - models["first_cohort"][rows],
    )


def headlines_of(models: NDArray[Any], rows: Integers, parameters: NDArray[Any]) -> NDArray[Any]:
    """Read the headlines of some rows, `HEADLINES` records (m,); parameters as in `read_cohorts`."""
    headlines = np.zeros(len(rows), HEADLINES)
    read_headlines(models, parameters, rows, headlines)
    return headlines


def _positive(values: Floats) -> Floats:
    """Values, undefined where they are 0."""
    return np.where(values > 0.0, values, np.nan)


def _lead(opponents: NDArray[Any], dispersion: Floats, delta: float) -> tuple[Floats, Floats, Floats]:
    """Mean lead since the verdict last changed, Σm/Σn, with the bounds of an asymptotic confidence sequence.

    As in `verdicts.readout`, with cohorts for blocks and the variance k·φ·Σv/(Σn)² for that of block means.
    """
    k = opponents["judged"].astype(np.float64)
    predictions = np.where(k > 0, opponents["predictions"], np.nan)
    lead = opponents["total"] / predictions
    n = np.where(k >= LEAST_BLOCKS, k, np.nan)
    deviation = np.sqrt(n * dispersion * opponents["squares"]) / predictions
    grown = n * RHO_SQUARED + 1.0
    width = deviation * np.sqrt(2.0 * grown / (n * n * RHO_SQUARED) * np.log(np.sqrt(grown) / delta))
    return lead, np.clip(lead - width, -1.0, 1.0), np.clip(lead + width, -1.0, 1.0)


# JSON documents of a model's headline and of its verdicts by cohorts for the API.


Status: TypeAlias = Literal["early", "confirmed", ""]
STATUSES: Final[dict[int, Status]] = {OPEN: "", EARLY: "early", CONFIRMED: "confirmed"}


def headline_document(found: Any) -> dict[str, object] | None:
    """Build the document of one model's headline, a `HEADLINES` record; None until the model has one.

    `opponent` is present for *worse* only; `status`, `since_timestamp_seconds` and its interval are absent
    for *open*.
    """
    if not found["is_there"]:
        return None
    verdict = int(found["verdict"])
    document: dict[str, object] = {"basis": "cohorts", "verdict": VERDICT_WORDS[verdict]}
    if verdict < 0:
        document["opponent"] = OPPONENTS[int(found["opponent"])]
    if verdict:
        document["status"] = STATUSES[int(found["status"])]
        document["since_timestamp_seconds"] = float(found["since_ms"]) / 1000.0
        for name in ("earliest", "latest"):
            if found[f"{name}_ms"]:
                document[f"{name}_timestamp_seconds"] = float(found[f"{name}_ms"]) / 1000.0
    return document


AgeRule: TypeAlias = Literal["settled", "complete", "horizon"]
_RULES: Final[dict[int, AgeRule]] = {
    SETTLED_RULE: "settled",
    FAST_RULE: "complete",
    WHOLE_HORIZON: "horizon",
}
IMMEDIATE_MS: Final = 60_000
"""Labels are as good as immediate if 99 % of every kind come within a minute."""
IMMEDIATE_SHARE: Final = 0.99


_NEWEST: Final = np.dtype(
    [
        ("is_there", "i8"),
        ("rule", "i8"),
        ("age_ms", "i8"),
        ("lowest", "f8"),  # and highest G of the kinds that the model has outcomes of, or may have
        ("highest", "f8"),
    ]
)
"""Newest cohort of a model."""


class Shown(NamedTuple):
    """Copies of what documents show of the records of m models, a fifth of their bytes; by model."""

    recent: Integers
    last_age_ms: Integers
    cohorts: NDArray[Any]
    opponents: NDArray[Any]


def shown_of(models: NDArray[Any], rows: Integers) -> Shown:
    """Copy what `document_of` needs of the `MODEL` records in some rows."""
    return Shown(
        models["recent"][rows],
        models["last_age_ms"][rows],
        taken(models["cohorts"], rows),
        taken(models["opponents"], rows),
    )


def newest_cohorts(state: State, rows: Integers) -> NDArray[Any]:
    """Read the newest cohort of some models with no outcomes held, `_NEWEST` records, (m,)."""
    found = np.zeros(len(rows), _NEWEST)
    number = state.models["next_cohort"][rows]
    slot = (number - 1) % SLOTS
    found["is_there"] = number > 0
    found["rule"] = state.models["cohorts"]["rule"][rows, slot]
    found["age_ms"] = state.models["cohorts"]["age_ms"][rows, slot]
    shares = state.classes["share"][:, rows, slot]  # (8, m, 2)
    in_use = np.clip(state.models["classes"][rows], 1, CLASSES)
    used = (np.arange(CLASSES)[:, None] < in_use)[:, :, None]
    settled = found["rule"] == SETTLED_RULE
    found["lowest"] = np.where(settled, np.where(used, shares, np.inf).min(axis=(0, 2)), 1.0)
    found["highest"] = np.where(settled, np.where(used, shares, -np.inf).max(axis=(0, 2)), 1.0)
    return found


def document_of(
    verdicts: CohortVerdicts, shown: Shown, newest: Any, index: int, delta: float, least: int
) -> dict[str, object]:
    """Build the document of one model that has had an outcome; undefined values are absent.

    Parameters
    ----------
    verdicts, shown, index
        What `read_cohorts` and `shown_of` found, and the index of the model in them.
    newest
        Its newest cohort, `_NEWEST`.
    delta, least
        δ and the least N: `delta` and `outcomes` of `CohortsSpec`.
    """
    document: dict[str, Any] = {
        "judged": int(verdicts.judged[index]),
        "provisional": not verdicts.headlines[index]["is_there"],
        "waiting": int(verdicts.waiting[index]),
        "age_changes": int(verdicts.age_changes[index]),
        "left_out": int(verdicts.left_out[index]),
        "opponents": {name: _opponent(verdicts, index, j) for j, name in enumerate(OPPONENTS)},
    }
    needed = 4.0 * max(float(least), float(shown.recent[index])) / delta
    for j, of_opponent in enumerate(document["opponents"].values()):
        after = _shown_after_seconds(shown, index, j, needed)
        if of_opponent.get("verdict", "open") == "open" and isfinite(after):
            of_opponent["five_points_shown_after_seconds"] = after
    if newest["is_there"]:
        rule, age_ms = int(newest["rule"]), int(newest["age_ms"])
        lowest, highest = float(newest["lowest"]), float(newest["highest"])
        document["age_seconds"] = float(verdicts.age_seconds[index])
        document["age_rule"] = _RULES[rule]
        document["share_labelled"] = {"lowest": lowest, "highest": highest}
        document["as_good_as_immediate"] = age_ms <= IMMEDIATE_MS and lowest >= IMMEDIATE_SHARE
    return document


LEAD: Final = 0.05
"""Lead, on either side, for which it is estimated how long a verdict takes."""


def predictions_until_shown(squares: float, dispersion: float, threshold: float) -> float:
    """Estimate the number of predictions after which a lead of 5 points is a verdict.

    It is ln(1 + A·g)/g with g the growth of the logarithm of the best bet by one prediction,
    (q + μ)/2·ln(1 + λ) + (q − μ)/2·ln(1 − λ) over φ, for μ = .05: a bet begins at each prediction, and their
    sum (e^{gt} − 1)/g reaches A after t predictions. NaN if no bet grows.

    Parameters
    ----------
    squares
        q, the mean square of the lead of a prediction; for smaller ones than μ the number is undefined.
    dispersion
        φ.
    threshold
        A, the evidence that a claim needs.
    """
    if not squares > LEAD:
        return nan
    gain = (squares + LEAD) / 2.0 * np.log1p(STAKES) + (squares - LEAD) / 2.0 * np.log1p(-STAKES)
    growth = float(gain.max()) / dispersion
    return log1p(threshold * growth) / growth if growth > 0.0 else nan


def _shown_after_seconds(shown: Shown, index: int, j: int, needed: float) -> float:
    """Seconds until a lead of `LEAD` would be a verdict: for the predictions it takes, and to judge them.

    The rate is that of the cohorts closed last. NaN if there is none, if no cohort has been judged since the
    verdict last changed, and where `predictions_until_shown` is. `needed` is the evidence that a claim needs.
    """
    cohorts, opponent = shown.cohorts[index], shown.opponents[index, j]
    closed = (cohorts["predictions"] > 0) & (cohorts["ended_ms"] > cohorts["opened_ms"])
    if not closed.any() or not opponent["predictions"] > 0.0:
        return nan
    lasted_ms = float((cohorts["ended_ms"] - cohorts["opened_ms"])[closed].sum())
    per_ms = float(cohorts["predictions"][closed].sum()) / lasted_ms
    squares = float(opponent["squares"] / opponent["predictions"])
    dispersion = max(float(opponent["dispersion"]), 1.0)
    until = predictions_until_shown(squares, dispersion, needed)
    return (until / per_ms + float(shown.last_age_ms[index])) / 1000.0


def _opponent(verdicts: CohortVerdicts, index: int, j: int) -> dict[str, object]:
    found: dict[str, object] = {
        "retracted": int(verdicts.retracted[index, j]),
        "changes": int(verdicts.changes[index, j]),
    }
    verdict = float(verdicts.verdict[index, j])
    if isfinite(verdict):
        found["verdict"] = VERDICT_WORDS[int(verdict)]
        found["evidence"] = {
            "better": float(verdicts.better[index, j]),
            "worse": float(verdicts.worse[index, j]),
        }
    confirmed = float(verdicts.confirmed[index, j])
    if isfinite(confirmed):
        found["status"] = "confirmed" if confirmed else "early"
    named = {
        "e_value": verdicts.e_value,
        "since_timestamp_seconds": verdicts.since_seconds,
        "earliest_timestamp_seconds": verdicts.earliest_seconds,
        "latest_timestamp_seconds": verdicts.latest_seconds,
        "lead": verdicts.lead,
        "lower": verdicts.lower,
        "upper": verdicts.upper,
        "dispersion": verdicts.dispersion,
    }
    for name, values in named.items():
        if isfinite(value := float(values[index, j])):
            found[name] = value
    return found


# Confirmation of alarms: whether predictions of that time err more, or only the mix of labels changed.
#
# A detector takes outcomes in the order of their labels. If errors are labelled sooner than hits, or later,
# a change of traffic changes the mix of labels that arrive, and the detector finds a rise of the error
# though the model errs as before. Cohorts of prediction time do not have that bias (see `cohorts`). So an
# alarm is unconfirmed until the cohort that contains its time has been judged, and then, and at each cohort
# after that, the error of predictions made since a change is compared with that of those before it:
#
#     e = Σ w·miss / Σ w,    w = 1/G    (G as for the verdict; a ratio, whose variance is by the delta method)
#     z = (e_after − e_before) / √(φ·(v_after + v_before))
#
# for every beginning of a stretch up to the alarm as the change; the one with the greatest z counts. The
# alarm is confirmed if z ≥ 3, and contradicted if e_after − e_before + 2·√(φ·(…)) is below half of the rise
# that the detector found. Otherwise it waits for the next cohort. φ is the larger dispersion of the leads.


LEAST_COHORTS: Final = 40
"""Alarms can be confirmed once more cohorts than this are judged: dispersion is known then."""
CONFIRMS: Final = 3.0
"""Standard errors by which predictions must err more."""
CONTRADICTS: Final = 2.0
"""Standard errors of the bound that must be below half of the rise found."""
LEAST_WEIGHT: Final = 100.0
"""Weight of outcomes before and after a change from which they are compared."""


def expected_ms(model: Any, at_ms: int) -> int | None:  # a record of numpy's
    """Find the clock from which cohorts may confirm an alarm at a time.

    None if labels come within a minute, as alarms then need no confirmation, and if too few cohorts have been
    judged to give one.

    Parameters
    ----------
    model
        `MODEL` record, with no outcomes held.
    at_ms
        Clock at the alarm.
    """
    if model["judged"] <= LEAST_COHORTS:
        return None
    newest = model["cohorts"][int(model["next_cohort"] - 1) % SLOTS]
    age_ms = int(newest["age_ms"])
    if newest["rule"] == FAST_RULE and age_ms <= IMMEDIATE_MS:
        return None
    closes_ms = int(model["closes_ms"]) if model["is_open"] else int(newest["ended_ms"])
    return max(closes_ms, at_ms) + age_ms


def confirmation_of(model: Any, at_ms: int, rise: float) -> Confirmation | None:
    """Judge an alarm by the cohorts; None while they do not decide.

    Parameters
    ----------
    model
        `MODEL` record, with no outcomes held.
    at_ms
        Clock at the alarm.
    rise
        Error after the change less that before it, as the detector found them; positive.
    """
    judged = int(model["bounds"] - (model["next_cohort"] - model["first_cohort"]))
    last = model["cohorts"][int(model["first_cohort"] - 1) % SLOTS]
    if last["ended_ms"] <= at_ms:  # as before the first cohort is judged: its end is 0 then
        return None
    starts: NDArray[np.int64] = model["bounds_ms"][:judged]
    stretches = model["stretches"][:judged]
    dispersion = max(1.0, *model["opponents"]["dispersion"].tolist())
    before = _errors(np.cumsum(stretches["weights"], 0), np.cumsum(stretches["weight_squares"], 0))
    after = _errors(
        np.cumsum(stretches["weights"][::-1], 0)[::-1], np.cumsum(stretches["weight_squares"][::-1], 0)[::-1]
    )
    best: tuple[float, Confirmation, float] | None = None
    for k in range(1, judged):
        (e_before, v_before, n_before), (e_after, v_after, n_after) = before[k - 1], after[k]
        if starts[k] > at_ms or min(n_before, n_after) < LEAST_WEIGHT:
            continue
        error = sqrt(dispersion * (v_before + v_after))
        change = e_after - e_before
        z = change / max(error, 1e-300)  # without any variance, every rise is beyond doubt
        if best is None or z > best[0]:
            found = Confirmation(z >= CONFIRMS, int(starts[k]), e_before, e_after)
            best = z, found, change + CONTRADICTS * error
    if best is None:
        return None
    _, found, bound = best
    return found if found.is_confirmed or bound < rise / 2.0 else None


def _errors(weights: NDArray[np.float64], squares: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """Error, its variance and the weight of each of m sums, (m, 2) each; an error without weight is 0."""
    total = np.maximum(weights.sum(1), 1e-300)
    error = weights[:, MISSES] / total
    variance = ((1.0 - error) ** 2 * squares[:, MISSES] + error**2 * squares[:, HITS]) / total**2
    return list(zip(error.tolist(), variance.tolist(), total.tolist(), strict=True))
