"""`JoinEntry`: entry of one (id, model), a waiting prediction or label, or the dedup entry of a settled one.

All entries of one id form a linked list, the chain, oldest first, so that a label without a model finds all
models that predicted its id with one look-up. The working set is `dict[id, first entry of the chain]`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamwatch.core.events import Label, Prediction

PENDING: Final = 0
"""A prediction without its label."""
EARLY: Final = 1
"""A label that names its model, come before the prediction."""
UNMATCHED: Final = 2
"""A label without a model that has met nobody yet."""
RETAINED: Final = 3
"""A label without a model that has met a prediction and waits for those of further models."""
RESOLVED: Final = 4
EXPIRED: Final = 5
WITHDRAWN: Final = 6
EVICTED: Final = 7
OVER_LIMIT: Final = 8
GONE: Final = 9
"""No longer in any chain; an index may still hold the record for a while."""

UNSTORED: Final = -1
"""`generation` of what waits, until a store on disk has noted when it falls due."""


class JoinEntry(msgspec.Struct, gc=False):
    """Entry of the working set; `RESOLVED` … `OVER_LIMIT` are dedup entries.

    `predicted_class` is empty for a waiting label, `true_class` where no label was seen. `record_ms` is the
    clamped record time of the event that made the record, `timestamp_ms` that event's own time, or that of
    the prediction that took its place (see `revising`). `label_at_prediction` is of a prediction: the
    label its model was resolved with last when it was accepted.
    `generation` says which generation of dedup entries it belongs to (see `DedupIndex`); of what waits it is
    negative, and its store's to use. Not tracked by the garbage collector: chains have no cycles.
    """

    id: str
    model: str | None
    state: int
    predicted_class: str
    true_class: str
    record_ms: int
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    generation: int = UNSTORED
    next: JoinEntry | None = None
    label_at_prediction: str | None = None
    segments: dict[str, str] | None = None
    topic: str = ""
    """Topic of what waits; empty where nobody says, and without a meaning in a dedup entry."""
    last_class: str | None = None
    """Class that was predicted last, of a prediction that waits and counts as it was first; None if it was
    never revised."""


def own_time(event: JoinEntry | Label | Prediction) -> int:
    """Return an event's own timestamp if it has one, else its record's."""
    return event.record_ms if event.timestamp_ms is None else event.timestamp_ms


def append(by_id: dict[str, JoinEntry], record: JoinEntry) -> None:
    """Append an entry to its id's chain."""
    last = by_id.get(record.id)
    if last is None:
        by_id[record.id] = record
        return
    while last.next is not None:
        last = last.next
    last.next = record


def forget(by_id: dict[str, JoinEntry], record: JoinEntry) -> None:
    """Remove an entry from its id's chain, if it is still in it."""
    record.state = GONE
    first = by_id.get(record.id)
    if first is record:
        if record.next is None:
            del by_id[record.id]
        else:
            by_id[record.id] = record.next
            record.next = None
        return
    while first is not None:
        if first.next is record:
            first.next = record.next
            record.next = None
            return
        first = first.next
