"""Notifications to send."""

from __future__ import annotations

import msgspec

from streamwatch.core.alerting.notification import Digest, Notification, Tally
from streamwatch.core.events import Alarm

NOW_MS = 1_700_000_000_000


def alarm(model: str = "fraud-v3", detector: str = "page_hinkley", **changes: object) -> Alarm:
    made = Alarm(model, detector, 2, 4_321, NOW_MS - 5_000, 50.25, 50.0, 0.1, 0.3125, 1_998.5)
    return msgspec.structs.replace(made, **changes)


def firing(name: str = "firing_1", model: str = "fraud-v3", **changes: object) -> Notification:
    about = alarm(model)
    made = Notification(name, "firing", "warning", NOW_MS, name, about, about.event_ms, about.before)
    return msgspec.structs.replace(made, **changes)


def resolved(of: Notification, **changes: object) -> Notification:
    made = msgspec.structs.replace(
        of, id=f"resolved_of_{of.id}", kind="resolved", ended_at_ms=NOW_MS + 60_000, reason="back_to_level"
    )
    return msgspec.structs.replace(made, **changes)


def digest(
    listed: int = 3, name: str = "digest_1", model: str = "m", issued_ms: int = NOW_MS
) -> Notification:
    found = Digest(
        alarms=12_345,
        series=listed,
        first_at_ms=NOW_MS - 9_000_000,
        last_at_ms=NOW_MS - 4_000_000,
        tallies=tuple(Tally(f"{model}-{i}", "adwin", 7) for i in range(listed)),
        earliest=tuple(alarm(f"{model}-{i}", ordinal=i) for i in range(listed)),
    )
    return Notification(
        name, "digest", "error", issued_ms, name, None, found.first_at_ms, alarms=12_345, digest=found
    )
