"""Keys that settings no longer have, and what is said of them now: errors tell it, nothing is an alias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RENAMED: Final[Mapping[str, str]] = {
    "alerts.alarm_ttl": "alerts.resolve_timeout",
    "alerts.max_alarm_age": "alerts.stale_after",
    "alerts.outlets": "alerts.receivers",
    "alerts.receivers.repeat": "alerts.receivers.repeat_interval",
    "join.max_tombstones": "join.max_dedup_entries",
    "join.tombstone_horizon": "join.dedup_horizon",
    "kafka.on_loss": "kafka.on_data_loss",
    "state.hot_records": "state.cache_entries",
}
"""Old key → new key, both from the root; indices of lists are left out."""

REMOVED: Final[Mapping[str, str]] = {
    "kafka.watermark_grace": "time.settle and time.max_hold_back set how long to wait for partitions",
    "time.max_disorder": "records are evaluated in one order; time.settle sets how long to wait for others",
    "time.max_skew": "time.max_future sets how far ahead a timestamp may be",
}
"""Old key → what there is instead."""


def said_of(path: str) -> str | None:
    """Say what has become of a key; None for one that never was.

    Parameters
    ----------
    path
        From the root, with dots, without indices of lists.
    """
    if (new := RENAMED.get(path)) is not None:
        return f"renamed: it is now called {new}"
    if (instead := REMOVED.get(path)) is not None:
        return f"no longer a setting: {instead}"
    return None
