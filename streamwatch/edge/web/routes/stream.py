"""Stream of server-sent events that tell open pages of every report, rendered once for all listeners.

`GET /api/v1/stream` sends `event: report` at once, and after every report::

    event: report
    id: 1760000001500
    data: {"published_timestamp_seconds": 1760000001.5, "models": 12, "alarms": [{…}]}

`alarms` are those raised since the last event, newest first; none for a new listener. With the first report
after a start they are all recent ones, also those of earlier runs. The id is the report's
time in ms. Numbers are not sent: a page requests those that it shows. `Last-Event-ID` is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.metrics.series import Report
from streamwatch.core.records.events import Alarm
from streamwatch.edge.web.documents import News
from streamwatch.edge.web.json_text import encode
from streamwatch.edge.web.ports import Route
from streamwatch.edge.web.routes.json_api import alarm_document, names_of


class NewsStream:
    """`Stream` of news; used by one thread at a time."""

    route = Route(
        "/api/v1/stream",
        "News of every report, as server-sent events",
        media_types=("text/event-stream",),
        details=(
            "An event `report` (schema News) at once and after every report: its time, the number of models, "
            "and the alarms raised since the event before. The id is the report's time in milliseconds. A "
            "comment every 15 s keeps the connection alive."
        ),
    )

    def __init__(self) -> None:
        self._report: Report | None = None
        self._models = 0

    def events(self, report: Report | None, *, whole: bool) -> tuple[bytes, bytes]:
        """Render the events for new listeners (without alarms, empty unless `whole`) and for earlier ones."""
        changes = b""
        if report is not None and report is not self._report:
            self._models = len(names_of(report.families))
            changes = self._event(report, _news(self._report, report))
            self._report = report
        return self._event(report, ()) if whole else b"", changes

    def _event(self, report: Report | None, alarms: Sequence[Alarm]) -> bytes:
        published_ms = None if report is None else report.published_ms
        identity = b"" if published_ms is None else b"id: %d\n" % published_ms
        published = None if published_ms is None else published_ms / 1000
        news = News(published, self._models, [alarm_document(alarm) for alarm in alarms])
        return b"event: report\n%bdata: %b\n\n" % (identity, encode(news))


def _news(before: Report | None, after: Report) -> list[Alarm]:
    """Return the alarms that the previous report did not have, newest first; all without a previous one."""
    earlier = set(before.alarms[-1:]) if before else set[Alarm]()
    found: list[Alarm] = []
    for alarm in reversed(after.alarms):
        if alarm in earlier:
            break
        found.append(alarm)
    return found
