"""The status page kept up to date: server-sent events, rendered once for all who listen.

`GET /api/v1/stream` sends first `event: overview` (the document of `/api/v1/overview`), then, after every
report, `event: report` with what changed::

    event: report
    id: 1760000001500
    data: {"published_timestamp_seconds": 1760000001.5, "forgetting": "fading:0.999",
           "models": {"m": {…}}, "gone": ["retired"], "alarms": [{…}]}

`models` are the rows that changed, whole; `gone` the models that are no more; `alarms` those raised since the
last event, newest first. The id is the report's time in milliseconds. Who reconnects is given the whole
picture again, so nothing depends on `Last-Event-ID`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from streamwatch.core.events import Alarm
from streamwatch.core.metrics.series import Report
from streamwatch.edge.web.documents import Changes, Row
from streamwatch.edge.web.json_text import encode
from streamwatch.edge.web.routes.json_api import alarm_document
from streamwatch.edge.web.routes.overview import Overview, document, overview


class OverviewStream:
    """Messages to new and to earlier listeners; used by one thread at a time."""

    route = "/api/v1/stream"

    def __init__(self) -> None:
        self._report: Report | None = None
        self._seen = overview(None)

    def events(self, report: Report | None, *, whole: bool) -> tuple[bytes, bytes]:
        """The whole picture (if wanted), and what changed since the last call."""
        changes = b""
        if report is not None and report is not self._report:
            seen = overview(report)
            changes = _event("report", seen, _changes(self._seen, seen, _news(self._report, report)))
            self._seen, self._report = seen, report
        return _event("overview", self._seen, document(self._seen, report)) if whole else b"", changes


def _changes(before: Overview, after: Overview, news: Sequence[Alarm]) -> Changes:
    assert after.published_ms is not None  # noqa: S101 - of a report
    changed = {model: row for model, row in after.rows.items() if before.rows.get(model) != row}
    return Changes(
        after.published_ms / 1000,
        after.forgetting,
        cast("dict[str, Row]", changed),
        [model for model in before.rows if model not in after.rows],
        [alarm_document(alarm) for alarm in news],
    )


def _news(before: Report | None, after: Report) -> list[Alarm]:
    """Alarms that the report before did not have, newest first; both remember only so many."""
    earlier = set(before.alarms[-1:]) if before else set[Alarm]()
    found: list[Alarm] = []
    for alarm in reversed(after.alarms):
        if alarm in earlier:
            break
        found.append(alarm)
    return found


def _event(name: str, seen: Overview, data: object) -> bytes:
    identity = b"id: %d\n" % seen.published_ms if seen.published_ms is not None else b""
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), identity, encode(data))
