"""Reported values of verdicts by cohorts, as arrays over models and opponents; NaN where undefined."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.cohorts.headline import read_headlines
from streamwatch.core.estimators.registers.cohorts.state import (
    CLASSES,
    CONFIRMED,
    EARLY,
    FAST_RULE,
    HEADLINES,
    OPEN,
    OPPONENTS,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
    State,
)
from streamwatch.core.estimators.verdicts.readout import LEAST_BLOCKS, RHO_SQUARED
from streamwatch.core.estimators.verdicts.state import BETTER, WORSE

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

LEAST_COHORTS: Final = LEAST_BLOCKS
"""Number of judged cohorts from which the mean lead has bounds."""


class CohortVerdicts(NamedTuple):
    """Verdicts by cohorts of m models over both opponents: (m, 2), of models (m,); NaN where undefined."""

    verdict: Floats
    """1 better, −1 worse, 0 open; undefined until evidence is kept (see `claims`)."""
    since_seconds: Floats
    confirmed: Floats
    """1 for a confirmed verdict, 0 for an early one; undefined where none is held."""
    retracted: Integers
    changes: Integers
    better: Floats
    """Evidence from 0 to 1, see `evidence_of`."""
    worse: Floats
    lead: Floats
    lower: Floats
    upper: Floats
    dispersion: Floats
    age_seconds: Floats
    """Age of the newest cohort; undefined before the first."""
    judged: Integers
    age_changes: Integers
    headlines: NDArray[Any]
    """`HEADLINES` records, (m,)."""
    waiting: Integers
    """Number of cohorts that are closed and not judged yet."""


def evidence_of(sums: Floats, threshold: Floats) -> Floats:
    """Evidence max(0, ln(mean M)/ln A) of sums M (…, 8), from 0 to 1 at a claim; A is the `threshold`."""
    return np.log(np.maximum(sums.mean(axis=-1), 1.0)) / np.log(threshold)


def read_cohorts(models: NDArray[Any], rows: Integers, delta: float, least: int) -> CohortVerdicts:
    """Read the records of some rows.

    Parameters
    ----------
    models
        `MODEL` records.
    rows
        Rows of the models, (m,).
    delta
        δ, the probability with which the bounds of a mean lead may be wrong.
    least
        Least N.
    """
    opponents = models["opponents"]
    judged = models["judged"][rows]
    opened = models["next_cohort"][rows]
    is_open = opened > 0
    decides = np.where(opponents["started"][rows] > 0, 1.0, np.nan)
    status = opponents["status"][rows]
    changes = opponents["changes"][rows]
    needed = 2.0 * np.maximum(least, models["recent"][rows]) / delta
    threshold = np.empty((len(rows), 1, 2))
    threshold[:, 0, BETTER], threshold[:, 0, WORSE] = needed, 2.0 * needed
    evidence = evidence_of(opponents["sums"][rows], threshold)
    dispersion = np.maximum(opponents["dispersion"][rows], 1.0)
    lead, lower, upper = _lead(opponents, rows, dispersion, delta)
    headlines = np.zeros(len(rows), HEADLINES)
    read_headlines(models, rows, headlines)
    return CohortVerdicts(
        verdict=decides * opponents["verdict"][rows],
        since_seconds=np.where(changes > 0, opponents["since_ms"][rows] / 1000.0, np.nan),
        confirmed=np.where(status == OPEN, np.nan, (status == CONFIRMED) * 1.0),
        retracted=opponents["retracted"][rows],
        changes=changes,
        better=decides * evidence[..., BETTER],
        worse=decides * evidence[..., WORSE],
        lead=lead,
        lower=lower,
        upper=upper,
        dispersion=np.where(judged[:, None] > 0, dispersion, np.nan),
        age_seconds=np.where(is_open, models["last_age_ms"][rows] / 1000.0, np.nan),
        judged=judged,
        age_changes=models["age_changes"][rows],
        headlines=headlines,
        waiting=opened - models["is_open"][rows] - models["first_cohort"][rows],
    )


def _lead(
    opponents: NDArray[Any], rows: Integers, dispersion: Floats, delta: float
) -> tuple[Floats, Floats, Floats]:
    """Mean lead since the verdict last changed, Σm/Σn, with the bounds of an asymptotic confidence sequence.

    As in `verdicts.readout`, with cohorts for blocks and the variance k·φ·Σv/(Σn)² for that of block means.
    """
    k = opponents["judged"][rows].astype(np.float64)
    predictions = np.where(k > 0, opponents["predictions"][rows], np.nan)
    lead = opponents["total"][rows] / predictions
    n = np.where(k >= LEAST_COHORTS, k, np.nan)
    deviation = np.sqrt(n * dispersion * opponents["squares"][rows]) / predictions
    grown = n * RHO_SQUARED + 1.0
    width = deviation * np.sqrt(2.0 * grown / (n * n * RHO_SQUARED) * np.log(np.sqrt(grown) / delta))
    return lead, np.clip(lead - width, -1.0, 1.0), np.clip(lead + width, -1.0, 1.0)


# JSON documents of a model's headline and of its verdicts by cohorts for the API.


Status: TypeAlias = Literal["early", "confirmed", ""]
STATUSES: Final[dict[int, Status]] = {OPEN: "", EARLY: "early", CONFIRMED: "confirmed"}


def headline_document(said: CohortVerdicts) -> dict[str, object] | None:
    """Build the document of one model's headline; None until evidence is kept.

    `opponent` is that of a headline *worse*; `status` and `since_timestamp_seconds` are absent of an open
    one.
    """
    found: Any = said.headlines[0]
    if not found["is_there"]:
        return None
    verdict = int(found["verdict"])
    document: dict[str, object] = {"basis": "cohorts", "verdict": _WORDS[verdict]}
    if verdict < 0:
        document["opponent"] = OPPONENTS[int(found["opponent"])]
    if verdict:
        document["status"] = STATUSES[int(found["status"])]
        document["since_timestamp_seconds"] = float(found["since_ms"]) / 1000.0
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
_WORDS: Final = {1: "better", -1: "worse", 0: "open"}


def document_of(state: State, row: int, said: CohortVerdicts) -> dict[str, object]:
    """Build the document of one model; undefined values are absent.

    Parameters
    ----------
    state, row
        State with no outcomes held, and the row of the model, which has had at least one.
    said
        What `read_cohorts` found of this model alone.
    """
    record: Any = state.models[row]
    document: dict[str, object] = {
        "judged": int(said.judged[0]),
        "provisional": not said.headlines[0]["is_there"],
        "waiting": int(said.waiting[0]),
        "age_changes": int(said.age_changes[0]),
        "opponents": {name: _opponent(said, j) for j, name in enumerate(OPPONENTS)},
    }
    if record["next_cohort"] > 0:
        slot = int(record["next_cohort"] - 1) % SLOTS
        rule, age_ms = int(record["cohorts"]["rule"][slot]), int(record["cohorts"]["age_ms"][slot])
        lowest, highest = _shares(state, row, slot) if rule == SETTLED_RULE else (1.0, 1.0)
        document["age_seconds"] = float(said.age_seconds[0])
        document["age_rule"] = _RULES[rule]
        document["share_labelled"] = {"lowest": lowest, "highest": highest}
        document["as_good_as_immediate"] = age_ms <= IMMEDIATE_MS and lowest >= IMMEDIATE_SHARE
    return document


def _shares(state: State, row: int, slot: int) -> tuple[float, float]:
    """Lowest and highest G of the kinds that the model has outcomes of, or may have."""
    in_use = max(1, min(int(state.models["classes"][row]), CLASSES))
    shares: NDArray[np.float64] = state.classes["share"][:in_use, row, slot]
    return float(shares.min()), float(shares.max())


def _opponent(said: CohortVerdicts, j: int) -> dict[str, object]:
    found: dict[str, object] = {
        "retracted": int(said.retracted[0, j]),
        "changes": int(said.changes[0, j]),
    }
    verdict = float(said.verdict[0, j])
    if isfinite(verdict):
        found["verdict"] = _WORDS[int(verdict)]
        found["evidence"] = {"better": float(said.better[0, j]), "worse": float(said.worse[0, j])}
    confirmed = float(said.confirmed[0, j])
    if isfinite(confirmed):
        found["status"] = "confirmed" if confirmed else "early"
    named = {
        "since_timestamp_seconds": said.since_seconds,
        "lead": said.lead,
        "lower": said.lower,
        "upper": said.upper,
        "dispersion": said.dispersion,
    }
    for name, values in named.items():
        if isfinite(value := float(values[0, j])):
            found[name] = value
    return found
