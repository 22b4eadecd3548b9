"""Record layouts of the compiled join: entries, rows, outcomes, totals.

An entry takes one cache line. The entries of one id form a chain (`next`) in order of arrival. Entries that
wait are in a queue per kind, in order of arrival; since the clock never goes back and all entries of a kind
wait equally long, this is also the order in which they fall due. Dedup entries are in the list of their
generation.
"""

from __future__ import annotations

import mmap
from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.counters import JoinCounters, LabelCounters
from streamwatch.core.records.batch import MOST_TOPICS
from streamwatch.core.records.events import CARRIED
from streamwatch.core.records.outcomes import OUTCOME, PAIR_COLUMNS, Pairs
from streamwatch.core.specs import JoinSpec

# Large arrays whose memory is used only when touched, and returned to the system when freed.


_LEAST_BYTES: Final = 1 << 17
"""Smaller arrays are not worth pages of their own."""
_HUGE_BYTES: Final = 1 << 22
"""From this size on, pages of 2 MB are requested, as numpy does."""


def lazy_zeros(count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Allocate an array of zeros, shape (count,), without using memory yet.

    numpy's zeros can come from the C library's heap, where reused memory must be cleared and is thereby
    touched.

    Raises
    ------
    MemoryError
        If the system refuses to map that much.
    """
    size = count * kind.itemsize
    if size < _LEAST_BYTES:
        return np.zeros(count, kind)
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as refused:  # callers take an OSError for a failure of a file
        raise MemoryError(f"unable to map {size:,} bytes for {count:,} entries") from refused
    if size >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, kind)


def room_for_pairs(number: int) -> Pairs:
    """Allocate room for `number` pairs, without using memory yet."""
    return lazy_zeros(number * PAIR_COLUMNS, np.dtype(np.int32)).reshape(-1, PAIR_COLUMNS)


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
"""Entry of the join in 64 bytes; -1 stands for None, and for the end of a chain, queue or list.

`low`, `high`: digest of the id. `true_or_scores`: for a pending prediction, the number of its scores, or,
from `outcomes.SEGMENTS_FROM` on, of its segments if it has no scores; otherwise the true class. `topic`:
number of the topic of an entry that waits, 0 for none; undefined for a dedup entry. `later`: next entry in
its queue or list. `earlier_or_generation`: for an entry that waits, the one before it in its queue; for a
dedup entry its generation, modulo 2³¹.
"""

NO_TIME: Final = np.iinfo(np.int64).min
"""Timestamp of an event without a time of its own."""

PREDICTION, LABEL, WITHDRAWAL, NOTHING, ACCEPTED = range(5)
"""Values of `side`; rows after WITHDRAWAL only move the clock.

When the loop accepts a prediction it changes the side of its row to ACCEPTED, so that the caller can see
which predictions were accepted.
"""

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
        ("carried", np.int32, (len(CARRIED),)),
    ],
    align=True,
)
"""Event in the form the loop takes; names are numbers.

-1 stands for None, `NO_TIME` for no time, topic 0 for an unknown topic. `carried`: numbers of
`core.records.events.CARRIED` of a prediction.
"""

PREDICTIONS, EARLY_LABELS, RETAINED_LABELS = range(3)
"""Queues of entries that wait."""

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
        ("next_idle_check_s", np.int64),
        ("outcomes", np.int64),
        ("discarded", np.int64),
        ("obsolete", np.int64),
        ("changed", np.int64),
        ("cold", np.int64, (3,)),
        ("front", np.int64, (3,)),
        ("cold_ms", np.int64, (3,)),
        ("cold_unmatched", np.int64),
        ("needed", np.int64),
        ("used", np.int64),
        ("clock_ms", np.int64),
        ("pairs", np.int64),
        ("pairs_needed", np.int64),
        ("pair_generation", np.int64),
        ("known_models", np.int64),
        ("open_partners", np.int64),
        ("partners_ms", np.int64),
        ("marked_chains", np.int64),
    ]
)
"""Heads of all queues and lists, and totals.

`free`: first of the freed entries; `top`: number of entries ever used. `chains`: number of ids in the table.
`first`, `last`: ends of the queues. `generation`, `open…`: the open generation of dedup entries, and the
clock when it was opened, or when it was last found empty. `floor`: the oldest generation that is not dropped.
`dedup_clock_ms`: time up to which generations have been closed and dropped. `closed…`: the closed
generations, in the ring of `GENERATION`. `dead…`: list of dedup entries of dropped generations that are not
freed yet. `passed_ms`: time up to which due entries have been processed. `next_idle_check_s`: second before
which no model can be idle. `outcomes`, `discarded`: numbers written since they were last handed over.
`obsolete`, `changed`: numbers of positions and of entries noted since the last commit. `cold`: number of
entries of each queue outside the table, guests included; `cold_unmatched`: those of them that are labels
without a match; `cold_ms`: lower bound of their record times. `front`: number of entries at the start of each
queue that were loaded from outside, older than all that are still there. `needed`: queue whose oldest entries
must be loaded. `used`: number of entries of the table in use. `clock_ms`: record time of the last row.
`pairs`: number written since they were last handed over; `pairs_needed`: room that one record needs.
`pair_generation`: generation in which `PARTNER` is up to date, -1 at first; `known_models`: number of models
known then; `open_partners`: as `partners` of a closed generation. `partners_ms`: record time up to which the
partners of pending predictions are in the table; see `loop.pass_time`. `marked_chains`: number of the last
chain whose models were marked (`rules.mark_models`).
"""

NEVER_MS: Final = 2**62
"""Time that is never reached."""
PARTNERS: Final = 3
"""Value of `needed` if all entries of further ids are needed: of predictions that fall due, or of rows."""

UNWRITTEN: Final = 0
"""Value in `Arrays.log_positions` of an entry that no commit has written as waiting."""
FRONT_BIT: Final = 62
FRONT: Final = 1 << FRONT_BIT
"""Bit in `Arrays.log_positions` of an entry that was loaded from outside to the front of its queue."""
CHANGED: Final = 1 << FRONT_BIT - 1
"""Bit in `Arrays.log_positions` of a prediction that changed since a commit wrote it."""
POSITION_BITS: Final = 47
"""Number of low bits of `Arrays.log_positions` with 1 + position; above: how often it was written before."""
POSITION_MASK: Final = 2**POSITION_BITS - 1
"""Mask of 1 + position in `Arrays.log_positions`."""
UNCHANGED, GONE, MATCHED, MATCH_STORED, REVISED = range(5)
"""Values of `Arrays.guests`: unchanged; not waiting any more; a label that was matched; such a label, stored
in a run; a prediction that was revised."""


GENERATION: Final = np.dtype(
    [
        ("number", np.int64),
        ("count", np.int64),
        ("newest_ms", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("partners", np.int64),
    ]
)
"""Closed generation of dedup entries.

`number`, `count`, `newest_ms`: as in `table.Generation`. `first`, `last`: ends of the list of its entries, -1
once they left the table. `partners`: number of (entry, compared model) whose model is not resolved yet on the
entry's id.
"""

GENERATIONS_KEPT: Final = 64
"""Length of the ring of closed generations, of which at most 15 were full and a dozen closed by age."""

UNDECIDED, ADMITTED, REFUSED = range(3)
"""Values of `admission`: undecided (the loop stops at the model's next prediction), admitted, or refused."""

ACTIVITY: Final = np.dtype(
    [
        ("admission", np.int64),
        ("pending", np.int64),
        ("last_ms", np.int64),
        ("last_event_ms", np.int64),
        ("joined", np.int64),
        ("left", np.int64),
        ("last_label", np.int64),
        ("before", np.int64),
        ("topic", np.int64),
        ("label_topic", np.int64),
        ("chain", np.int64),
    ]
)
"""`ModelActivity` by model number; 88 bytes. Topics by their numbers, 0 for none. `chain`: number of the last
chain in which the model was found to have an entry (`rules.mark_models`)."""

PARTNER: Final = np.dtype([("known_since", np.int64), ("expected", np.int32), ("listed", np.int32)])
"""State of a model as a partner in pairs, by model number.

`known_since`: first generation that waits for it, -1 for none. `expected`: number of partners that an entry
of the open generation waits for, -1 if not counted yet. `listed`: not about this model; the first
`known_models` records list the numbers of the models known.
"""

STREAM: Final = np.dtype([("low", np.uint64), ("high", np.uint64), ("label", np.int32), ("before", np.int32)])
"""`durable.totals.Stream`, by the number of the folds' model: id and label that were resolved last, and the
label before; -1 without any."""

LABEL_COLUMNS: Final = tuple(each.name for each in fields(LabelCounters))
PREDICTIONS_ACCEPTED: Final = len(LABEL_COLUMNS)
PREDICTIONS_JOINED: Final = PREDICTIONS_ACCEPTED + 1
"""Columns of `topics` in `COUNTERS` after those of labels."""
WITH_MODEL, WITHOUT_MODEL = range(2)
PLAIN_COUNTERS: Final = tuple(each.name for each in fields(JoinCounters) if each.type == "int")
COUNTERS: Final = np.dtype(
    [
        *((name, np.int64) for name in PLAIN_COUNTERS),
        ("labels", np.int64, (2, len(LABEL_COLUMNS))),
        ("topics", np.int64, (MOST_TOPICS, PREDICTIONS_JOINED + 1)),
    ]
)
"""`JoinCounters`: single numbers, `LabelCounters` of both forms of labels, and counters by topic number."""

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
        ("compares", np.int64),
        ("folds", np.int64),
        ("shares_stream", np.int64),
        ("conflicts", np.int64),
        ("last_class", np.int64),
        ("carried", np.int64, (len(CARRIED),)),
    ]
)
"""`JoinSpec`; `assume` is the number of the class, -1 without one; `start_ms` is `NO_TIME` without one.

`compares` is 1 if models are compared; `folds` if models may predict in folds; `shares_stream` if the
previous label of a fold's outcome is that of its model. `conflicts` is one of `FIRST`, `LAST` and `BOTH`;
`last_class` and `carried` are the numbers of these side columns, -1 without them.

`numbered` is 1 if labels of a model may be matched elsewhere, so that this join does not know the last one.
Then `label_at_prediction` holds the number of the prediction among all accepted ones, modulo 2³¹, and
`assumed` of an outcome that is not assumed holds `RESOLVED_FROM` plus the row that resolved it.
"""

FIRST, LAST, BOTH = range(3)
"""Values of `conflicts`: an id's first prediction counts; the last; the first, with the last class kept."""

NUMBER_BITS: Final = 2**31 - 1
"""Mask of the number of an accepted prediction; numbers start at 1."""
RESOLVED_FROM: Final = 2


TIMING: Final = np.dtype([("prediction_ms", np.int64), ("clock_ms", np.int64)])
"""Times of an outcome for the order of predictions.

`prediction_ms`: own time of the prediction. `clock_ms`: time of the row that resolved it; of an outcome that
was assumed, time of the last row before its deadline.
"""


class Arrays(NamedTuple):
    """Arrays that the loop reads and changes."""

    entries: Records
    """Dtype `ENTRY`, (capacity,)."""
    side: NDArray[np.int32]
    """Side columns, see `side_columns`: values of pending predictions by entry, (capacity, columns)."""
    slots: NDArray[np.uint64]
    """Shape (2^k,): upper half of an id's `low` in the upper 32 bits, 1 + its first entry in the lower."""
    totals: Records
    """Dtype `TOTALS`, (1,)."""
    counters: Records
    """Dtype `COUNTERS`, (1,)."""
    generations: Records
    """Dtype `GENERATION`, (`GENERATIONS_KEPT`,)."""
    activity: Records
    """Dtype `ACTIVITY`, (models,)."""
    limits: Records
    """Dtype `LIMITS`, (1,)."""
    outcomes: Records
    """Dtype `OUTCOME`, (room,)."""
    timing: Records
    """Dtype `TIMING`, (room,); (0,) unless outcomes are put into the order of predictions."""
    discarded: NDArray[np.int32]
    """Numbers of scores that are not needed any more, (room,) as `outcomes`."""
    log_positions: NDArray[np.int64]
    """Shape (capacity,): 1 + position in the waiting log of entries that a commit wrote, else `UNWRITTEN`.

    `FRONT` is added for an entry that was loaded from outside to the front of its queue.

    For a guest, -1 minus its number: it belongs to the entries outside the table and is in the table only
    while its id is processed. Without durable state nothing is written here, and no memory is used.
    """
    obsolete_positions: NDArray[np.int64]
    """`log_positions` of entries that stopped waiting since the last commit; negative for matched labels.

    Shape (2 × capacity,), as an entry may be matched and then stop waiting; memory is touched as it is used.
    """
    changed: NDArray[np.int32]
    """Shape (capacity,): written entries that changed since the last commit and are marked `CHANGED`."""
    guests: NDArray[np.int8]
    """Shape (guests,): state of each guest."""
    pairs: NDArray[np.int32]
    """Columns `outcomes.Pairs`, (room, `PAIR_COLUMNS`)."""
    relations: NDArray[np.uint64]
    """Shape (models, 2, words), or empty: bits of the groups that a model leads, and that it follows."""
    partners: Records
    """Dtype `PARTNER`, (models,), or empty."""
    owners: NDArray[np.int32]
    """Number of the model that a fold belongs to, or of the model itself, (models,), or empty."""
    streams: Records
    """Dtype `STREAM`, (models,), or empty."""


def allocate_entries(capacity: int) -> Records:
    """Allocate entries; memory is touched as they are used."""
    return lazy_zeros(capacity, ENTRY)


def allocate_slots(count: int) -> NDArray[np.uint64]:
    """Allocate empty slots, a power of two; memory is touched as they are used."""
    return lazy_zeros(count, np.dtype(np.uint64))


def allocate_log_positions(capacity: int) -> NDArray[np.int64]:
    """Allocate log positions, all `UNWRITTEN`; memory is touched as they are written."""
    return lazy_zeros(capacity, np.dtype(np.int64))


def allocate_numbers(capacity: int) -> NDArray[np.int32]:
    """Allocate room for numbers of entries; memory is touched as they are written."""
    return lazy_zeros(capacity, np.dtype(np.int32))


def allocate_outcomes(room: int) -> Records:
    """Allocate room for outcomes."""
    return np.zeros(room, OUTCOME)


def one_record(layout: np.dtype[Any], **values: int) -> Records:
    """Build one record with these values, 0 elsewhere."""
    record = np.zeros(1, layout)
    for name, value in values.items():
        record[name] = value
    return record


# Side columns: values of waiting predictions that only some settings need.
#
# An entry fills one cache line, so these values are not in it, but in a column of `Arrays.side`, in the row
# with the entry's number. They are moved when the table grows, written with the entry to the logs and to the
# runs outside the table, and restored with it. Settings choose the columns; without any, the array is empty.
# Every value is an int32, and 0 stands for none, so that a new column begins without values.
#
# Columns are stored by name. A stored column that the present settings do not use is dropped, or applied
# once (`renamed`), when the state is opened.


LAST_CLASS: Final = "last_class"
"""Column with 1 + number of the class predicted last, under `join.conflicts: both`; 0 if never revised."""
OF_CLASSES: Final = (LAST_CLASS,)
"""Columns whose values are 1 + number of a class."""
REPLACES_CLASS: Final = "replaces_class"
"""Name of a stored column whose classes, where there are any, replace those predicted when it is read."""
UNUSED: Final = ""
"""Name of a stored column that is not read any more."""

Side = NDArray[np.int32]
"""Values of entries, shape (n, columns)."""


def side_columns(spec: JoinSpec) -> tuple[str, ...]:
    """Names of the columns that these settings use, in order."""
    revised = (LAST_CLASS,) if spec.conflicts == "both" else ()
    return (*revised, *(each.name for each in CARRIED if each.name in spec.carried))


def column_of(name: str, columns: tuple[str, ...]) -> int:
    """Number of a side column; -1 if it is not used."""
    return columns.index(name) if name in columns else -1


def renamed(stored: tuple[str, ...], spec: JoinSpec) -> tuple[str, ...]:
    """Return the names under which stored columns are read with these settings.

    The last class that `join.conflicts: both` stored replaces the class predicted if it is `last` now, and is
    dropped if it is `first`.
    """
    used = {*side_columns(spec), REPLACES_CLASS}
    unused = {LAST_CLASS: REPLACES_CLASS} if spec.conflicts == "last" else {}
    return tuple(name if name in used else unused.get(name, UNUSED) for name in stored)


def allocate_side(capacity: int, columns: int) -> Side:
    """Allocate side columns, all 0, (capacity, columns), or (0, 0); memory is touched as rows are used."""
    if not columns:
        return np.zeros((0, 0), np.int32)
    return lazy_zeros(capacity * columns, np.dtype(np.int32)).reshape(capacity, columns)
