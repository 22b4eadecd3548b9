"""Layouts that the compiled join works on: entries, rows that come in, outcomes that go out, totals.

An entry is one cache line. Entries of one id hang in a chain (`next`), first come first. Entries that wait
hang in a queue of their kind, in the order in which they came: the clock never goes back and all of a kind
wait equally long, so that is the order in which they fall due. Dedup entries hang in the list of their
generation.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.untouched import untouched
from streamwatch.core.join.counters import JoinCounters, LabelCounters
from streamwatch.core.outcomes import OUTCOME
from streamwatch.core.records import MOST_TOPICS

Records = NDArray[np.void]

ENTRY: Final = np.dtype(
    [
        ("low", np.uint64),
        ("high", np.uint64),
        ("record_ms", np.int64),
        ("timestamp_ms", np.int64),
        ("model", np.int32),
        ("predicted_class", np.int32),
        ("true_or_scores", np.int32),
        ("label_at_prediction", np.int32),
        ("state", np.int16),
        ("topic", np.int16),
        ("next", np.int32),
        ("later", np.int32),
        ("earlier_or_generation", np.int32),
    ],
    align=True,
)
"""`JoinEntry` in 64 bytes; -1 stands for None, and for the end of a chain, queue or list.

`low`, `high`: digest of the id. `true_or_scores`: number of its scores while a prediction is pending, or,
from `outcomes.SEGMENTS_FROM` on, of its segments if it has no scores; else the true class. `topic`: number of
the topic of what waits, 0 for none; of a dedup entry it says nothing. `later`: the next
in its queue or list. `earlier_or_generation`: the one before it in its queue, of what waits; of a dedup entry
its generation, modulo 2³¹.
"""

NO_TIME: Final = np.iinfo(np.int64).min
"""Stands for an event without a time of its own."""

PREDICTION, LABEL, WITHDRAWAL, NOTHING, ACCEPTED = range(5)
"""Values of `side`; of those after a withdrawal only the time matters. The loop makes a prediction that it
takes in an accepted one, so that whoever gave the rows knows which of them were."""

ROW: Final = np.dtype(
    [
        ("low", np.uint64),
        ("high", np.uint64),
        ("record_ms", np.int64),
        ("timestamp_ms", np.int64),
        ("model", np.int32),
        ("class", np.int32),
        ("scores", np.int32),
        ("side", np.int16),
        ("topic", np.int16),
    ],
    align=True,
)
"""An event as the loop takes it; names are numbers, -1 stands for None (`NO_TIME` for a time), and 0 for a
topic that nobody says."""

PREDICTIONS, EARLY_LABELS, RETAINED_LABELS = range(3)
"""Queues of what waits."""

TOTALS: Final = np.dtype(
    [
        ("free", np.int64),
        ("top", np.int64),
        ("chains", np.int64),
        ("pending", np.int64),
        ("early", np.int64),
        ("unmatched", np.int64),
        ("retained", np.int64),
        ("first", np.int64, (3,)),
        ("last", np.int64, (3,)),
        ("generation", np.int64),
        ("floor", np.int64),
        ("open_entries", np.int64),
        ("open_newest_ms", np.int64),
        ("open_first", np.int64),
        ("open_last", np.int64),
        ("opened_ms", np.int64),
        ("dedup_clock_ms", np.int64),
        ("closed_start", np.int64),
        ("closed", np.int64),
        ("closed_entries", np.int64),
        ("dead_first", np.int64),
        ("dead_last", np.int64),
        ("passed_ms", np.int64),
        ("next_look_s", np.int64),
        ("outcomes", np.int64),
        ("discarded", np.int64),
        ("left", np.int64),
        ("cold", np.int64, (3,)),
        ("front", np.int64, (3,)),
        ("cold_ms", np.int64, (3,)),
        ("cold_unmatched", np.int64),
        ("needed", np.int64),
        ("used", np.int64),
        ("settled", np.int64),
    ]
)
"""Where everything begins and how much of it there is.

`free`: first of the freed entries; `top`: entries ever used. `chains`: ids in the table. `first`, `last`:
ends of the queues. `generation` … `opened_ms`: the open generation of dedup entries; `closed…`: the others,
in the ring of `GENERATION`. `dead…`: list of dedup entries of dropped generations, not freed yet.
`passed_ms`: up to here everything due has fallen due. `next_look_s`: when a model may be idle. `outcomes`,
`discarded`: how many were written since they were taken last. `left`: places noted since the last commit.
`cold`: entries of each queue that lie outside the table, guests included, of which `cold_unmatched` are
labels that nobody has met; `cold_ms`: no earlier record time is among them. `front`: entries at the beginning
of each queue that came back from there, older than all that are there. `needed`: the queue whose oldest must
come back. `used`: entries of the table that are in use. `settled`: entries noted since the last commit; -1
once there were more than fit.
"""

SETTLED_NOTED: Final = 1 << 16
"""Room of `Arrays.settled`: more than a commit brings, unless very many expire at once."""

UNWRITTEN: Final = 0
"""Stands in `Arrays.places` for an entry that no commit has written as one that waits."""
FRONT_BIT: Final = 62
FRONT: Final = 1 << FRONT_BIT
"""Bit in `Arrays.places` of an entry that came back to the front of its queue."""
PLACE_BITS: Final = 47
"""Of 1 + a place in `Arrays.places`; above them stands how often the entry was written before."""
PLACES: Final = 2**PLACE_BITS - 1
UNCHANGED, GONE, MET, TOLD = range(4)
"""Values of `Arrays.guests`: the last of a label that was met, once its run knows."""


GENERATION: Final = np.dtype(
    [
        ("number", np.int64),
        ("count", np.int64),
        ("newest_ms", np.int64),
        ("first", np.int64),
        ("last", np.int64),
    ]
)
"""A closed generation of dedup entries."""

GENERATIONS_KEPT: Final = 64
"""Room of the ring: at most 15 are closed for being full, and a dozen for their age, before one goes."""

UNPLACED, PLACED, REFUSED = range(3)
"""Values of `place`: the loop stops at the model's next prediction; it has a place; there was none."""

ACTIVITY: Final = np.dtype(
    [
        ("place", np.int64),
        ("pending", np.int64),
        ("last_ms", np.int64),
        ("last_event_ms", np.int64),
        ("joined", np.int64),
        ("left", np.int64),
        ("last_label", np.int64),
        ("unused", np.int64),
    ]
)
"""`ModelActivity` of each model, by its number; 64 bytes."""

LABEL_COLUMNS: Final = tuple(each.name for each in fields(LabelCounters))
PREDICTIONS_ACCEPTED: Final = len(LABEL_COLUMNS)
PREDICTIONS_JOINED: Final = PREDICTIONS_ACCEPTED + 1
"""Columns of `topics` in `COUNTERS`, behind those of labels."""
WITH_MODEL, WITHOUT_MODEL = range(2)
PLAIN_COUNTERS: Final = tuple(each.name for each in fields(JoinCounters) if each.type == "int")
COUNTERS: Final = np.dtype(
    [
        *((name, np.int64) for name in PLAIN_COUNTERS),
        ("labels", np.int64, (2, len(LABEL_COLUMNS))),
        ("topics", np.int64, (MOST_TOPICS, PREDICTIONS_JOINED + 1)),
    ]
)
"""`JoinCounters`: those that are one number, `LabelCounters` of both forms, and those by number of topic."""

LIMITS: Final = np.dtype(
    [
        ("horizon_ms", np.int64),
        ("early_horizon_ms", np.int64),
        ("dedup_horizon_ms", np.int64),
        ("max_pending", np.int64),
        ("max_labels", np.int64),
        ("max_dedup_entries", np.int64),
        ("retain_unmatched", np.int64),
        ("assume", np.int64),
        ("start_ms", np.int64),
        ("numbered", np.int64),
    ]
)
"""`JoinSpec`; `assume` is the number of the class, -1 without one; `start_ms` is `NO_TIME` without one.

`numbered`: 1 where labels of a model may be met elsewhere, so that nobody here knows the last one. Then
`label_at_prediction` has the number of the prediction among all that were accepted, modulo 2³¹; and `assumed`
of an outcome that is not, the row that resolved it and `RESOLVED_FROM`.
"""

NUMBER_BITS: Final = 2**31 - 1
"""Of the number of an accepted prediction, the first of which has 1."""
RESOLVED_FROM: Final = 2


class Arrays(NamedTuple):
    """Everything the loop reads and changes."""

    entries: Records
    """`ENTRY` (capacity,)."""
    slots: NDArray[np.uint64]
    """(2^k,): upper half of an id's `low` in the upper 32 bits, first entry of its chain + 1 in the lower."""
    totals: Records
    """`TOTALS` (1,)."""
    counters: Records
    """`COUNTERS` (1,)."""
    generations: Records
    """`GENERATION` (`GENERATIONS_KEPT`,)."""
    activity: Records
    """`ACTIVITY` (models,)."""
    limits: Records
    """`LIMITS` (1,)."""
    outcomes: Records
    """`OUTCOME` (room,)."""
    discarded: NDArray[np.int32]
    """Numbers of scores that nobody needs any more; room for one per row and per outcome."""
    places: NDArray[np.int64]
    """(capacity,): 1 + where the last commit that wrote an entry did so, else `UNWRITTEN`; `FRONT` besides.

    Of a guest -1 less its number: it lies outside the table, and is in it while its id is looked at. So
    nothing is written here, and no memory used, where nothing is durable.
    """
    left: NDArray[np.int64]
    """What stood in `places` of entries that wait no longer since the last commit; of labels that were met,
    its negative.

    (2 × capacity,): a place may be noted once as either; memory is touched as it is used.
    """
    guests: NDArray[np.int8]
    """(guests,): what has become of each."""
    settled: NDArray[np.int32]
    """(`SETTLED_NOTED`,): entries that settled since the last commit, in that order."""


def entries_of(capacity: int) -> Records:
    """Make room for so many entries; memory is touched as they are used."""
    return untouched(capacity, ENTRY)


def slots_of(count: int) -> NDArray[np.uint64]:
    """Make so many empty slots, a power of two; memory is touched as they are used."""
    return untouched(count, np.dtype(np.uint64))


def places_of(capacity: int) -> NDArray[np.int64]:
    """Make room for so many places, `UNWRITTEN`; memory is touched as they are written."""
    return untouched(capacity, np.dtype(np.int64))


def outcomes_of(room: int) -> Records:
    """Make room for so many outcomes."""
    return np.zeros(room, OUTCOME)


def one(layout: np.dtype[Any], **values: int) -> Records:
    """Make one record with these values, 0 elsewhere."""
    record = np.zeros(1, layout)
    for name, value in values.items():
        record[name] = value
    return record
