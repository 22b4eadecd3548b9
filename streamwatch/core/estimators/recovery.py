"""Recovery after a drift: how far the error rises, and how many outcomes it takes to come back.

First the record of one model, then the compiled functions that follow its faded error after every outcome,
then those that read depths and lengths from records.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.memory import HITS, N
from streamwatch.core.jit import hot, inner
from streamwatch.core.metrics import DEPTH_BOUNDS, LENGTH_BOUNDS
from streamwatch.core.metrics.series import Histogram
from streamwatch.core.specs import FadingSpec, MonitorsSpec

# Record of a model's recovery: the drift under way, the last that ended, and counts of all.
#
# All fields have eight bytes and are zero at first. The error is that under the first configured fading
# factor α, whose memory length is 1/(1 − α) outcomes.


VERSION = 1
"""Incremented when the meaning of the state changes."""

SAMPLES = 64
"""Samples of the faded error that are kept, of at least 4 memory lengths."""
PER_MEMORY = 8
"""Least number of samples in a memory length, unless it has fewer outcomes."""
MOST_MEMORIES = 10
"""Least number of memory lengths after which a drift ends as not recovered."""

SAMPLE = np.dtype([("error", "f8"), ("n_eff", "f8")])

OF_DRIFTS = [
    ("since", "i8"),  # outcomes before the drift under way; 0 without one
    ("alarm_ms", "i8"),  # event time of the outcome that declared it
    ("before", "f8"),  # error at `since`
    ("limit", "f8"),  # … plus its bound
    ("peak", "f8"),  # highest error since
    ("recovered", "i8"),  # drifts that ended, by how
    ("not_recovered", "i8"),
    ("depth", "f8"),  # of the last that ended
    ("outcomes", "f8"),  # … from its start until the error was back; NaN if it did not come back
]
RECOVERY = np.dtype(
    [
        *OF_DRIFTS,
        ("alarmed", "i8"),  # outcome that declared the drift under way
        ("back", "i8"),  # the first outcome from the peak on at which the error was within its limit, or 0
        ("depth_sum", "f8"),
        ("outcomes_sum", "f8"),  # of those that recovered
        ("depths", "i8", (len(DEPTH_BOUNDS) + 1,)),  # drifts by depth, the last bucket without bound
        ("lengths", "i8", (len(LENGTH_BOUNDS) + 1,)),
        ("sampled", "i8"),  # samples taken
        ("samples", SAMPLE, (SAMPLES,)),  # of outcome k·2^shift at index k modulo their number
    ]
)
TRACED = np.dtype(OF_DRIFTS)
"""Fields of a record that a trace has."""
RECOVERY_PARAMETERS = np.dtype(
    [
        ("shift", "i8"),  # an error is sampled every 2^shift outcomes
        ("memory", "i8"),  # in outcomes
        ("of_bound", "f8"),  # ln(2/δ)/2
        ("longest", "i8"),  # outcomes after which a drift ends as not recovered
        ("depths", "f8", (len(DEPTH_BOUNDS),)),  # upper bounds of buckets
        ("lengths", "f8", (len(LENGTH_BOUNDS),)),
    ]
)


def watched_of(spec: MonitorsSpec) -> FadingSpec | None:
    """Return the fading factor whose error is followed: the first; None without one."""
    return next((f for f in spec.forgetting if isinstance(f, FadingSpec)), None)


def recovery_identity(spec: MonitorsSpec) -> tuple[object, ...]:
    """Settings that the state depends on: it is not continued under others."""
    return watched_of(spec), spec.confidence_delta, spec.verdict_outcomes, DEPTH_BOUNDS, LENGTH_BOUNDS


def recovery_parameters(alpha: float, delta: float, outcomes: int) -> NDArray[np.void]:
    """Build the parameters (`RECOVERY_PARAMETERS`), shape ().

    Parameters
    ----------
    alpha
        Fading factor in (0, 1).
    delta
        δ of the Hoeffding bound, in (0, 1).
    outcomes
        Outcomes after which a drift ends as not recovered; ten memory lengths if those are more.
    """
    memory = max(round(1.0 / (1.0 - alpha)), 1)
    shift = max((memory // PER_MEMORY).bit_length() - 1, 0)
    longest = max(outcomes, MOST_MEMORIES * memory)
    found = (shift, memory, log(2.0 / delta) / 2.0, longest, DEPTH_BOUNDS, LENGTH_BOUNDS)
    return np.array(found, RECOVERY_PARAMETERS)


# Follow the faded error of a model from a drift until it is back (recovery analysis).
#
# A drift begins with an alarm of a detector at a rise of the error, or with a verdict that becomes worse.
# The error is sampled at every 2^shift-th outcome, and a drift starts at one of the samples:
#
#     verdict    the last sample before the outcome since which the model is worse
#     detector   of the samples from the last one that is at least a memory length old (or the oldest) up to
#                the alarm, the last one at which the error was no higher than at the first of them
#
# A drift from before the oldest of the 64 samples that are kept has no known error before it and is not
# followed. With e that sample's error and ε its Hoeffding bound, over the outcomes since then:
#
#     depth      highest error − e, at least 0
#     length     outcomes until the error is first ≤ e + ε again after its peak; 0 if it never exceeded that
#
# The drift ends as recovered once its length is known and a memory length has passed since the alarm:
# sooner, the error may not have risen yet. After `longest` outcomes it ends as not recovered. Alarms before
# its end belong to it. Before its alarm the error is known at samples only.
#
# A verdict on a model with folds begins a drift of the fold at whose outcome it became worse. The outcome
# since which the verdict holds is numbered in the fold with the strongest bet, so another fold may not have
# had as many outcomes yet.
#
# Source: recovery analysis, Shaker, Hüllermeier, *Recovery analysis for adaptive learning from non-
# stationary data streams*, Neurocomputing 150, 2015; Brzezinski, Stefanowski, §1; Cervantes et al., §2.4.


@hot
def observe_recovery(m, parameters, event_ms, alarms, first, count):
    """Follow the error after an outcome; rows of `alarms` from `first` up to `count` are of this outcome."""
    for k in range(len(m.recovery)):
        if m.outcomes >= m.follow_at or count > first:
            follow(m, m.recovery[k], parameters.recovery[k], event_ms, alarms, first, count)


@inner
def follow(m, r, p, event_ms, alarms, first, count):
    """Let a drift go on, begin or end; keep a sample of the error if one is due."""
    unit = m.fading[0].unit
    n = m.totals[0, N]
    error = 1.0 - (m.totals[0, HITS] / unit) / (n / unit)
    if r.since == 0 and count > first:
        begin(r, p, m.outcomes, event_ms, alarms, first, count)
    if r.since > 0:
        take(r, error, m.outcomes)
        end(r, p, m.outcomes)
    at = m.outcomes >> p.shift
    m.follow_at = m.outcomes + 1 if r.since > 0 else (at + 1) << p.shift
    if at << p.shift == m.outcomes:
        sample = r.samples[at & (SAMPLES - 1)]
        sample.error = error
        sample.n_eff = n * n / m.fading[0].squares
        r.sampled += 1


@inner
def begin(r, p, outcome, event_ms, alarms, first, count):
    """Begin a drift if the error rose or a verdict became worse, and there is a sample from before."""
    rose = False
    since = 0
    for i in range(first, count):
        alarm = alarms[i]
        if alarm.since > 0:
            if alarm.after < 0.0:
                rose = True
                since = alarm.since
        elif alarm.after > alarm.before:
            rose = True
    if not rose or r.sampled == 0:
        return
    newest = (outcome - 1) >> p.shift
    oldest = newest - min(r.sampled, SAMPLES) + 1
    start = min((since - 1) >> p.shift, newest)
    if since > 0 and start < oldest:
        return
    if since == 0:
        level = r.samples[max((outcome - p.memory) >> p.shift, oldest) & (SAMPLES - 1)].error
        start = newest
        while r.samples[start & (SAMPLES - 1)].error > level:
            start -= 1
    sample = r.samples[start & (SAMPLES - 1)]
    r.since = start << p.shift
    r.alarmed = outcome
    r.alarm_ms = event_ms
    r.before = sample.error
    r.limit = sample.error + sqrt(p.of_bound / sample.n_eff)
    r.peak = -1.0
    r.back = 0
    for k in range(start + 1, newest + 1):
        take(r, r.samples[k & (SAMPLES - 1)].error, k << p.shift)


@inner
def take(r, error, outcome):
    """Update peak and return of the drift under way with the error after an outcome."""
    if error > r.peak:
        r.peak = error
        r.back = 0
    if r.back == 0 and error <= r.limit:
        r.back = outcome


@inner
def end(r, p, outcome):
    """End the drift under way if the model has recovered from it, or took too long."""
    if r.back > 0 and outcome - r.alarmed >= p.memory:
        r.outcomes = float(r.back - r.since) if r.peak > r.limit else 0.0
        r.outcomes_sum += r.outcomes
        r.lengths[bucket_of(p.lengths, r.outcomes)] += 1
        r.recovered += 1
    elif outcome - r.since >= p.longest:
        r.outcomes = np.nan
        r.not_recovered += 1
    else:
        return
    r.depth = max(r.peak - r.before, 0.0)
    r.depth_sum += r.depth
    r.depths[bucket_of(p.depths, r.depth)] += 1
    r.since = 0
    r.alarmed = 0
    r.alarm_ms = 0
    r.before = 0.0
    r.limit = 0.0
    r.peak = 0.0
    r.back = 0


@inner
def bucket_of(bounds, value):
    """Index of the first bound that is not below a value; their number if all are."""
    k = 0
    while k < len(bounds) and value > bounds[k]:
        k += 1
    return k


@inner
def copy_traced(r, traced):
    """Copy the fields of a record that a trace has."""
    traced.since = r.since
    traced.alarm_ms = r.alarm_ms
    traced.before = r.before
    traced.limit = r.limit
    traced.peak = r.peak
    traced.recovered = r.recovered
    traced.not_recovered = r.not_recovered
    traced.depth = r.depth
    traced.outcomes = r.outcomes


# Values of records of recovery, as arrays over them.


Floats: TypeAlias = NDArray[np.float64]


class Recoveries(NamedTuple):
    """Drifts of m models and how they ended, each array (m,)."""

    recovering: Floats
    """1 while a drift is under way, else 0."""
    begun: Floats
    """Drifts so far."""
    recovered: Floats
    """Drifts from which the error came back."""
    not_recovered: Floats
    """Drifts that ended without the error coming back."""
    depth: Floats
    """Depth of the last drift that ended; NaN before the first."""
    outcomes: Floats
    """Outcomes from its start until the error was back; NaN before the first, and if it did not come back."""


def read_recoveries(records: NDArray[Any]) -> Recoveries:
    """Read records (`RECOVERY` or `TRACED`), shape (m,)."""
    recovering = (records["since"] > 0).astype(np.float64)
    recovered = records["recovered"].astype(np.float64)
    not_recovered = records["not_recovered"].astype(np.float64)
    ended = np.where(recovered + not_recovered > 0, 1.0, np.nan)
    return Recoveries(
        recovering=recovering,
        begun=recovered + not_recovered + recovering,
        recovered=recovered,
        not_recovered=not_recovered,
        depth=ended * records["depth"],
        outcomes=ended * records["outcomes"],
    )


def read_histograms(records: NDArray[Any]) -> tuple[list[Histogram], list[Histogram]]:
    """Histograms of depths of drifts that ended and lengths of those recovered from, by `RECOVERY` record."""
    return tuple(
        [
            Histogram(tuple(counts), total)
            for counts, total in zip(
                np.cumsum(records[buckets], axis=1).tolist(), records[total].tolist(), strict=True
            )
        ]
        for buckets, total in (("depths", "depth_sum"), ("lengths", "outcomes_sum"))
    )  # pyright: ignore[reportReturnType]


def recovery_document(forgetting: str, error: float, record: np.void) -> dict[str, object]:
    """Describe the drift under way and the last that ended of one model, for people.

    Parameters
    ----------
    forgetting
        Name of the fading factor whose error is followed.
    error
        That error now.
    record
        Of `RECOVERY`, shape ().
    """
    read = read_recoveries(np.array([record], RECOVERY))
    document: dict[str, object] = {"forgetting": forgetting}
    if read.recovering[0]:
        document["under_way"] = {
            "since_outcome": int(record["since"]) + 1,
            "alarm_timestamp_seconds": float(record["alarm_ms"]) / 1000.0,
            "error_before_ratio": float(record["before"]),
            "error_now_ratio": error,
        }
    if read.recovered[0] + read.not_recovered[0] > 0:
        outcomes = float(read.outcomes[0])
        document["last"] = {
            "depth": float(read.depth[0]),
            "outcomes": outcomes if outcomes == outcomes else None,  # noqa: PLR0124 - NaN is not itself
        }
    return document
