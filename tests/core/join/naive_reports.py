"""Entries and activity of a naive join, as the compiled one reports its own."""

from __future__ import annotations

from streamwatch.core.join.counters import (
    EARLY,
    EVICTED,
    EXPIRED,
    OVER_LIMIT,
    PENDING,
    RESOLVED,
    RETAINED,
    UNMATCHED,
    WITHDRAWN,
)

WHY = {
    "resolved": RESOLVED,
    "expired": EXPIRED,
    "withdrawn": WITHDRAWN,
    "evicted": EVICTED,
    "over_limit": OVER_LIMIT,
}


def naive_alive(naive):
    """Entries that count, as `join_stream.alive` has them."""
    rows = [(p["id"], p["model"], PENDING, p["class"], "") for p in naive.pending]
    rows += [(e["id"], e["model"], EARLY, "", e["class"]) for e in naive.early]
    rows += [
        (k["id"], k["model"] or "", RETAINED if k["met"] else UNMATCHED, "", k["class"]) for k in naive.kept
    ]
    rows += [
        (s["id"], s["model"], WHY[s["why"]], s["class"], s["true_class"] or "") for s in naive.dedup.entries()
    ]
    return sorted(rows)


def naive_activity(naive):
    """`ModelActivity` of every model, by its fields."""
    return {
        model: {
            "name": model,
            "pending": sum(p["model"] == model for p in naive.pending),
            "held": sum(held[3].model == model for held in naive.order.held),
            "last_ms": last_ms,
            "last_label": naive.known.get(model),
            "last_event_ms": naive.active[model]["last_event"],
            "first_ms": naive.active[model]["first"],
            "joined": naive.active[model]["joined"],
            "left": naive.active[model]["left"],
            "before": 0,
            "topic": naive.active[model]["topic"],
            "label_topic": naive.active[model]["label_topic"],
        }
        for model, last_ms in naive.models.items()
    }
