"""State of a model's cohorts: one record per model, one per class that it has kinds of, and held outcomes.

A record has the trackers of the share of predictions labelled at each age, the cohorts that are open or wait
to be judged, the leads by stretch of prediction time, and the evidence against every opponent.

The *kind* of an outcome is what its delay may depend on: hit or miss, and the true class. The first seven
classes of a model have kinds of their own, all others share one. A record per class has, of its hits and of
its misses, the outcomes that are not settled by bucket and delay, the faded sums of the settled ones, and
what cohorts count. Records of a class follow each other by row, so memory is touched for classes that models
have. Two pooled kinds, all hits and all misses, are in the model's record.

Outcomes are *held* first, and taken in by the dozen: see `observe`. Everything is zero at first.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.cohorts import CLASSES
from streamwatch.core.estimators.verdicts.state import STAKES

# Ages at which cohorts may be judged, and buckets of prediction time, for one horizon.


AGES: Final = 16
"""Number of ages; the last is the horizon."""
WHOLE: Final = AGES - 1
"""Index of the horizon among the ages."""
WIDTHS: Final = 16
"""A bucket is a 16th of the horizon wide, a cohort a 16th of the time that it waits, mostly its age."""
DEADLINE_MS: Final = 1_000
"""Within it after the horizon, the labels are assumed of predictions that got none."""
LIVE: Final = WIDTHS + 1
"""Number of buckets whose predictions may still be labelled."""
NOTES: Final = 33
"""Number of notes of the most frequent label.

They are at least a 32nd of the horizon apart and so cover it.
"""
LEAST_PREDICTIONS: Final = 1_152.0
"""Predictions that must be judged before evidence is kept …"""
PREDICTIONS_BY_DISPERSION: Final = 2_000.0
"""… and that many per unit of φ."""
_LONG: Final = 8
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class CohortGeometry:
    """Ages and widths, in milliseconds.

    Attributes
    ----------
    horizon_ms
        H, the longest time that a label may take.
    width_ms
        Width of a bucket of prediction time, H/16 rounded up; buckets are counted from the epoch.
    note_ms
        Least distance of two notes of the most frequent label, H/32 rounded up.
    ages_ms
        Ages, ascending, int64 (16,). A delay is in bin i if age i is the first that is not below it.
    """

    horizon_ms: int
    width_ms: int
    note_ms: int
    ages_ms: NDArray[np.int64]

    def index_of(self, age_ms: int) -> int:
        """Index of the first age that is at least `age_ms`; the last one beyond the horizon."""
        return min(int(np.searchsorted(self.ages_ms, age_ms)), WHOLE)


def geometry_of(horizon_ms: int) -> CohortGeometry:
    """Compute ages and widths of a horizon of at least a second.

    The last 8 ages grow by √2 up to the horizon, where the choice matters most. The 8 below them grow by one
    factor each, from a 2¹⁵th of the horizon, but from no less than a second and no more than a minute; if the
    horizon is below 16 s, from a 16th of it.
    """
    long = [horizon_ms * 2.0 ** (-i / 2) for i in reversed(range(_LONG))]
    first = min(horizon_ms / WIDTHS, max(1_000, min(_MINUTE_MS, horizon_ms / 2**WHOLE)))
    short = [first * (long[0] / first) ** (i / _LONG) for i in range(AGES - _LONG)]
    ages = np.array([round(age) for age in (*short, *long)], np.int64)
    return CohortGeometry(horizon_ms, -(-horizon_ms // WIDTHS), -(-horizon_ms // (NOTES - 1)), ages)


Records: TypeAlias = NDArray[np.void]

OPPONENTS: Final = ("persistent_at_prediction", "majority")
"""Opponents whose answers are fixed when the prediction is made, as the label `opponent` names them."""
NO_CHANGE, MAJORITY = range(len(OPPONENTS))
ALL: Final = len(OPPONENTS)
"""Index of all outcomes, beside those whose lead over an opponent is not 0."""

SIDES: Final = 2
HITS, MISSES = range(SIDES)
"""Sides of a class: first index of what is kept of its kinds."""
SLOTS: Final = 18
"""Number of slots for cohorts; at most 17 are alive, because a width is at least a 16th of every wait."""
BOUNDS: Final = 64
"""Largest number of stretches of prediction time in which leads are summed to confirm a verdict."""
HALVES: Final = 2
"""Vectors that hold a number for every age."""
HELD: Final = 31
"""Largest number of outcomes of a model that are held."""
MOST_COUNTED: Final = 2**32 - 2**24
"""Outcomes of a bucket, and predictions of a cohort, from which its counts are left out.

In this range no count of 32 bits runs over. A share of outcomes of a bucket, those labelled first, would be
biased, so the others tell nothing of their kinds either.
"""

MOST_UNPAID: Final = 4.0
"""Number of labels that cohorts may lack beyond those that they paid for, above which no cohort bets."""
MOST_REMEMBERED: Final = MOST_UNPAID + 1.0
"""Largest such number that is remembered: a weekend without any label is paid for within hours."""

OPEN, EARLY, CONFIRMED = range(3)
"""Status of a verdict: none held, or held by a claim that is not confirmed yet, or by a confirmed one."""
SETTLED_RULE, FAST_RULE, WHOLE_HORIZON = range(1, 4)
"""Rules that give a cohort its age: shares of settled outcomes, shares of all predictions, or the horizon."""

LENGTHS: Final = 3
"""Number of lengths of the sums of cohorts whose differences measure dispersion."""
_EVIDENCE: Final = (2, len(STAKES))

OUTCOME: Final = np.dtype(
    [
        ("at_ms", "i8"),  # clock at which the label came
        ("waited_ms", "i8"),  # since the prediction
        ("made", "u4"),
        ("true_class", "i4"),
        ("predicted_class", "i4"),
        ("known", "i4"),  # 2·(label at the prediction + 1), 0 without one; plus 1 if the label is assumed
    ]
)

HELD_OUTCOMES: Final = np.dtype(
    [
        ("number", "i8"),
        ("from_ms", "i8"),  # a verdict can change from this clock on …
        ("more", "i8"),  # … once so many predictions more are made
        ("made", "i8"),  # than at this outcome, modulo 2³²
        ("outcomes", OUTCOME, (HELD,)),
    ]
)
"""Outcomes of a model that are not taken in: a kilobyte, of which an outcome touches two lines."""

COHORT: Final = np.dtype(
    [
        ("opened_ms", "i8"),
        ("ended_ms", "i8"),
        ("age_ms", "i8"),  # A
        ("made_opened", "i8"),  # number of predictions made before it
        ("predictions", "i8"),  # n, once it is closed
        ("rule", "i8"),
        ("missing", "f8"),  # share of predictions without label at its age, by the fast rule
        ("scale", "f8"),  # 1/c
    ]
)

STRETCH: Final = np.dtype(
    [
        ("outcomes", "i8", (len(OPPONENTS),)),  # that the opponent answered
        ("leads", "i8", (len(OPPONENTS),)),
        ("lead_squares", "i8", (len(OPPONENTS),)),
        # of judged cohorts: hits and misses that were labelled by A, weighted by w = 1/G
        ("weights", "f8", (SIDES,)),  # Σ w
        ("weight_squares", "f8", (SIDES,)),  # Σ w²
    ]
)

LEADS: Final = np.dtype(
    [
        ("predictions", "f8"),  # Σ n
        ("totals", "f8", (len(OPPONENTS),)),  # Σ m, of leads weighted by w = 1/G
        ("squares", "f8", (len(OPPONENTS),)),  # Σ v, of their squares
    ]
)
"""Leads of the judged cohorts of a stretch of prediction time, over each opponent."""

KIND_SUMS: Final = np.dtype(
    [
        ("totals", "f8", (SIDES,)),  # T
        ("totals_squared", "f8", (SIDES,)),  # TT
        ("early", "f8", (SIDES, AGES)),  # E
        ("early_squared", "f8", (SIDES, AGES)),  # EE
        ("early_totals", "f8", (SIDES, AGES)),  # ET
    ]
)
"""Faded sums of settled outcomes, in the unit of the model's `settled_unit`."""

CLASS: Final = np.dtype(
    [
        ("labelled", "u4", (SLOTS, SIDES, ALL + 1)),  # outcomes labelled by A: whose lead is not 0, and all
        ("share", "f8", (SLOTS, SIDES)),  # G by cohort, if its rule is the settled one …
        ("band", "f8", (SLOTS, SIDES)),  # … and by how much it may be wrong
        ("settled_share", "f8", (SIDES,)),  # the same at the settled age
        ("settled_band", "f8", (SIDES,)),
        ("sums", KIND_SUMS),
        ("lead_sizes", "f8", (SIDES,)),  # Σ |lead by costs|, faded as the sums; 0 without costs
        ("counts", "u4", (LIVE, SIDES, AGES)),  # outcomes by slot of the bucket, side and bin of delay
    ]
)
"""Hits and misses of a class."""

OPPONENT: Final = np.dtype(
    [
        ("started", "i8"),  # whether evidence is kept
        ("verdict", "i8"),  # 1 better, −1 worse, 0 open
        ("status", "i8"),
        ("since_ms", "i8"),  # prediction time from which the verdict holds …
        ("earliest_ms", "i8"),  # … and its interval, see `claims`: 0 for none
        ("latest_ms", "i8"),
        ("unrenewed", "i8"),  # number of predictions judged since its side was last claimed
        ("dispersion", "f8"),  # φ; 0 stands for 1
        ("changes", "i8"),
        ("retracted", "i8"),
        ("sums", "f8", _EVIDENCE),  # M
        ("maxima", "f8", _EVIDENCE),  # C
        ("starts_ms", "i8", _EVIDENCE),  # opening of the cohort from which C has grown
        ("wealth", "f8", (1, len(STAKES))),  # L, of bets that the model is worse, which no claim resets
        # differences of sums over 1, 4 and 16 cohorts
        ("parts", "i8", (LENGTHS,)),  # number of cohorts in the current sum
        ("means", "f8", (LENGTHS,)),  # Σ m/n over them
        ("variances", "f8", (LENGTHS,)),  # Σ v/n² over them
        ("wholes", "i8", (LENGTHS,)),  # number of complete sums
        ("last_means", "f8", (LENGTHS,)),
        ("last_variances", "f8", (LENGTHS,)),
        ("spread", "f8", (LENGTHS,)),  # squares of differences, faded
        ("expected", "f8", (LENGTHS,)),  # what they are expected to be, faded
        ("weights", "f8", (LENGTHS,)),  # number of differences, faded
        ("terms", "i8", (LENGTHS,)),
        # cohorts judged since the verdict last changed
        ("judged", "i8"),
        ("predictions", "f8"),  # Σ n
        ("total", "f8"),  # Σ m
        ("squares", "f8"),  # Σ v
        # outcomes of the predictions for which an early verdict was claimed
        ("from_ms", "i8"),
        ("to_ms", "i8"),
        ("claim_outcomes", "f8"),
        ("claim_total", "f8"),
        ("claim_squares", "f8"),
    ]
)
"""Lead over one opponent: verdict, evidence, dispersion, and sums that confirm the verdict."""

MODEL: Final = np.dtype(
    [
        # what every outcome needs comes first
        ("observed", "i8"),  # number of outcomes
        ("clock_ms", "i8"),
        ("due_ms", "i8"),  # clock at which something may be due next …
        ("due_made", "i8"),  # … or number of predictions made
        ("made", "i8"),  # number of predictions made since the first outcome
        ("last_made", "i8"),  # the same as counted by the join, modulo 2³²
        ("unit", "f8"),  # what the newest label counts for the leader
        ("leader", "i8"),  # the most frequent class plus 1; 0 before the first label
        ("classes", "i8"),  # highest class counted, plus 1
        ("noted", "i8"),  # leader as noted last, plus 1; 0 before the first note
        ("noted_ms", "i8"),
        ("notes", "i8"),  # number of notes of the leader
        ("bucket_ms", "i8"),  # start of the first bucket that is not settled …
        ("bucket_slot", "i8"),  # … its slot …
        ("settles_ms", "i8"),  # … and the clock at which it settles
        ("bounds", "i8"),  # number of stretches of prediction time
        ("claims", "i8"),  # number of early verdicts
        ("first_cohort", "i8"),  # number of the oldest cohort that is not judged …
        ("first_slot", "i8"),  # … and its slot
        ("next_cohort", "i8"),
        ("is_open", "i8"),  # whether the newest cohort is still open …
        ("closes_ms", "i8"),  # … and from when on it may close
        ("bucket_outcomes", "u4", (LIVE + 1,)),  # by slot; the last is not used
        ("window_opened_ms", "f8", (HALVES, AGES // HALVES)),  # of trackers …
        ("window_ended_ms", "f8", (HALVES, AGES // HALVES)),  # … `UNENDED` until then
        ("window_labels", "f8", (HALVES, AGES // HALVES)),
        ("cohorts", COHORT, (SLOTS,)),
        ("bounds_ms", "i8", (BOUNDS,)),
        ("stretches", STRETCH, (BOUNDS,)),
        ("leads", LEADS, (BOUNDS,)),  # by stretch
        # trackers
        ("tracked_ms", "i8"),  # clock at which a tracker may be due next …
        ("tracked_made", "i8"),  # … or number of predictions made
        ("tracker_due_ms", "i8", (AGES,)),  # clock from which it ends, or is read
        ("tracker_made", "i8", (AGES,)),  # `made` at its opening; once it has ended, predictions in it
        ("tracker_share", "f8", (AGES,)),  # labels in time …
        ("tracker_total", "f8", (AGES,)),  # … and predictions of all windows read
        # notes of the leader
        ("note_ms", "i8", (NOTES,)),
        ("note_class", "i8", (NOTES,)),
        # settled buckets
        ("settled_buckets", "i8"),  # number of buckets settled since the first with an outcome
        ("settled_number", "f8"),  # number of those with an outcome, faded as these
        ("settled_unit", "f8"),  # what an outcome of the newest bucket counts in sums
        ("settled_age", "i8"),  # 1 + age by the settled rule; 0 for none yet
        ("settled_scale", "f8"),  # 1/c at it
        ("is_stale", "i8"),  # whether a bucket was settled since the age was chosen
        ("pooled", KIND_SUMS),
        ("settled_share", "f8", (SIDES,)),  # G of the pooled kinds at the settled age …
        ("settled_band", "f8", (SIDES,)),  # … and by how much it may be wrong
        # cohorts
        ("share", "f8", (SLOTS, SIDES)),  # the same by cohort, if its rule is the settled one
        ("band", "f8", (SLOTS, SIDES)),
        ("fast_age", "i8"),  # 1 + age by the fast rule; 0 for none
        ("judged", "i8"),  # number of cohorts judged …
        ("judged_predictions", "i8"),  # … and of their predictions
        ("last_age_ms", "i8"),  # age of the cohort opened last
        ("age_changes", "i8"),
        ("recent", "f8"),  # predictions of the last 30 days, faded
        ("recent_ms", "i8"),  # clock …
        ("recent_made", "i8"),  # … and `made` when it was last computed
        ("opponents", OPPONENT, (len(OPPONENTS),)),
        ("headlines", "i8"),  # number of changes of the headline, its beginning included
        ("left_out", "i8"),  # number of buckets and cohorts with `MOST_COUNTED` or more
        ("gaps_ms", "i8", (LIVE,)),  # longest gap between labels that ended in a bucket, by slot
        ("unpaid", "f8"),  # predictions without a label that bets by the fast rule did not pay for
        ("unused", "i8"),  # so that a record ends with a cache line
    ],
    align=True,
)

CHANGE: Final = np.dtype(
    [
        ("position", "i8"),  # of the outcome in the batch
        ("row", "i8"),
        ("opponent", "i8"),
        ("kind", "i8"),
        ("ordinal", "i8"),  # number of changes of the verdict, or of the headline, so far
        ("before", "i8"),
        ("after", "i8"),
        ("since_ms", "i8"),
        ("earliest_ms", "i8"),  # interval of it: 0 for none
        ("latest_ms", "i8"),
        ("evidence", "f8"),
        ("threshold", "f8"),
        ("judged", "i8"),
        # of the headline only, except for `status`
        ("status", "i8"),  # afterwards
        ("is_first", "i8"),  # whether there was none before
        ("is_retracted", "i8"),  # whether it became open because a claim was retracted
        ("predictions", "i8"),  # number of predictions judged
        ("outcomes", "i8"),  # number of earlier outcomes whose predictions were made since
    ]
)
CLAIMED, CONFIRMS, RETRACTED, EXPIRED, HEADLINE = range(5)
"""Kinds of changes: a claim, its confirmation or retraction, the expiry of a verdict that was not renewed,
and the resulting change of the headline, one for all changes at an outcome."""
MOST_CHANGES: Final = 4 * SLOTS + 1
"""Number of changes that one outcome can make, at most."""

HEADLINES: Final = np.dtype(
    [
        ("is_there", "i8"),  # whether there is one
        ("verdict", "i8"),
        ("opponent", "i8"),
        ("status", "i8"),
        ("since_ms", "i8"),  # 0 of an open one
        ("earliest_ms", "i8"),  # interval of it: 0 for none
        ("latest_ms", "i8"),
    ]
)
"""Headline of a model as it is now."""

BETS: Final = np.dtype(
    [
        ("logarithms", "f8", _EVIDENCE),  # Σ ln(1 ± λ·d·a/c), better and worse
        ("total", "f8"),  # Σ d/G
        ("squares", "f8"),  # Σ (d/G)²
    ]
)
"""Leads of one cohort over one opponent, of a model that is judged by costs; see `settled`."""

BY_COSTS: Final = np.dtype(
    [
        ("table", "i8"),  # number of its table of costs, plus 1; 0 for a model that is not judged by one
        ("fingerprint", "u8"),  # of the table
        ("bets", BETS, (SLOTS * len(OPPONENTS),)),  # by slot of the cohort, then by opponent
    ]
)
"""Further record of a model that is judged by costs."""

PARAMETERS: Final = np.dtype(
    [
        ("horizon_ms", "i8"),
        ("width_ms", "i8"),
        ("inverse_width", "f8"),
        ("delta", "f8"),
        ("outcomes", "i8"),  # least N
        ("fixed_age", "i8"),  # index of the only age; −1 if it adapts
        ("note_ms", "i8"),
        ("least_predictions", "f8"),  # judged before evidence is kept …
        ("predictions_by_dispersion", "f8"),  # … and per unit of φ
        ("by_prediction", "i8"),  # whether outcomes come in the order of predictions
        ("opponents", "i8"),  # number of opponents that there are verdicts against
        ("apart", "i8"),  # number of class indices up to which no two classes share a kind
        ("by_costs", "i8"),  # 1 if models may be judged by costs, else 0
        ("ages_ms", "i8", (AGES,)),
        ("ages", "f8", (HALVES, AGES // HALVES)),  # the same
    ]
)


class State(NamedTuple):
    """Records of m models; memory is touched only for rows and classes in use."""

    models: Records
    """`MODEL` (m,)."""
    classes: Records
    """`CLASS` (8, m)."""
    held: Records
    """`HELD_OUTCOMES` (m,)."""
    labels: NDArray[np.float64]
    """Faded counts of labels, (m, classes): as many classes as there is room for (`with_room_for`)."""
    by_costs: Records
    """`BY_COSTS` (m,); a single unused record if no model may be judged by costs."""
    cost_classes: NDArray[np.int32]
    """Index in the model's table of costs, by row and class, (m, classes + 2); (1, 1) without tables."""
    costs: NDArray[np.float64]
    """Utility by table, true class and answer; see `verdicts.costs`."""


_LEAST_MAPPED_BYTES: Final = 1 << 20
"""Smaller arrays are not worth pages of their own."""
_HUGE_BYTES: Final = 64 << 20
"""From this size on, pages of 2 MB are requested."""
_FIRST_CLASSES: Final = 8
"""Number of classes whose labels can be counted at first: most models have no more, and a row of a thousand
would take as much memory as everything else of a model together."""


def empty(capacity: int, max_classes: int, costs: NDArray[np.float64] | None = None) -> State:
    """Build the state of `capacity` models with up to `max_classes` classes and one for all others.

    `costs` are the tables of costs by which models may be judged.
    """
    rows, columns = (1, 1) if costs is None else (capacity, max_classes + 2)
    return State(
        _zeros(capacity, MODEL),
        _zeros(CLASSES * capacity, CLASS).reshape(CLASSES, capacity),
        _zeros(capacity, HELD_OUTCOMES),
        _labels(capacity, min(_FIRST_CLASSES, max_classes + 1)),
        _zeros(rows, BY_COSTS),
        np.zeros((rows, columns), np.int32),
        np.zeros((0, 1, 1)) if costs is None else costs,
    )


def with_room_for(state: State, classes: int, most: int) -> State:
    """Return the state with room to count labels of so many classes, of at most `most`.

    Room is doubled, so that models with ever more classes copy the counts of all models a few times only.
    """
    rows, room = state.labels.shape
    if classes <= room:
        return state
    labels = _labels(rows, min(max(classes, 2 * room), most))
    labels[:, :room] = state.labels
    return state._replace(labels=labels)


def _labels(rows: int, classes: int) -> NDArray[np.float64]:
    return _zeros(rows * classes, np.dtype(np.float64)).reshape(rows, classes)


def _zeros(number: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Allocate zeroed records that begin at a cache line; memory is taken when it is first used.

    Most models have few classes, so with some hundred models, the huge pages that numpy requests would be
    half empty. With many thousand, few are empty, and without huge pages an outcome takes a fifth longer.
    """
    size = number * kind.itemsize
    if size >= _LEAST_MAPPED_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE if size >= _HUGE_BYTES else mmap.MADV_NOHUGEPAGE)
        return np.frombuffer(memory, kind)
    line = 64
    whole = np.zeros(size + line, np.uint8)
    start = -whole.ctypes.data % line
    return whole[start : start + size].view(kind)
