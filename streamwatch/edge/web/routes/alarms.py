"""Recent alarms of all models, newest first.

`GET /api/v1/alarms?limit=20&model=m`::

    {"published_timestamp_seconds": 1760000000.5,
     "alarms": [{"model": "m", "detector": "adwin", "ordinal": 2, "outcome": 2464,
                 "timestamp_seconds": 1759999990.0, "statistic": 0.31, "threshold": 0.12,
                 "before": 0.02, "after": 0.31, "effective_sample_size": 160.0}]}

`before` and `after` are mean losses (the share of errors) on either side of the change as the detector splits
it; `timestamp_seconds` is the event time of outcome number `outcome` of the model. Values that are undefined
or infinite are absent. A change of verdict has no mean losses, but

    "judgement": {"opponent": "persistent", "verdict": "worse", "since_outcome": 2301,
                  "since_timestamp_seconds": 1759999000.0, "quick_labels_only": false}

A detector's alarm may say since when *predictions* err otherwise, as labels come later:

    "predictions": {"since_timestamp_seconds": 1759980000.0, "earliest_timestamp_seconds": 1759978000.0,
                    "latest_timestamp_seconds": 1759982000.0, "before": 0.02, "after": 0.31}

That of a detector in prediction time (`monitors.detector_clocks`) has `predicted_timestamp_seconds`, when the
prediction was made at whose outcome it alarmed; `outcome` and `timestamp_seconds` say when that was noticed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice

from streamwatch.core.estimators.registers.late_labels.document import change_document
from streamwatch.core.events import Alarm, Judgement
from streamwatch.core.series import Family, Report
from streamwatch.edge.web.json_text import JSON, encode

DEFAULT_LIMIT = 100
VERDICTS: Mapping[int, str] = {1: "better", -1: "worse", 0: "open"}


class AlarmsExporter:
    """`/api/v1/alarms`: those the daemon still remembers, whether or not somebody was notified."""

    routes: Sequence[str] = ("/api/v1/alarms",)
    query: Mapping[str, str] = {"limit": "[1-9][0-9]{0,3}", "model": ".{1,128}"}
    headers: Mapping[str, str] = {}
    public = False

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """JSON, whatever is asked for."""
        del accept, asked
        return JSON

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes:
        """At most `limit` alarms, of one model if `asked` names it."""
        del live, media_type
        model = asked.get("model")
        newest_first = reversed(report.alarms) if report else iter(())
        chosen = (alarm for alarm in newest_first if model is None or alarm.model == model)
        return encode(
            {
                "published_timestamp_seconds": report.published_ms / 1000 if report else None,
                "alarms": [told(a) for a in islice(chosen, int(asked.get("limit", DEFAULT_LIMIT)))],
            }
        )


def told(alarm: Alarm) -> dict[str, object]:
    """An alarm as it is sent."""
    values = {
        "statistic": alarm.statistic,
        "threshold": alarm.threshold,
        "effective_sample_size": alarm.n_eff,
    }
    if alarm.judgement is None:
        values |= {"before": alarm.before, "after": alarm.after}
    return {
        "model": alarm.model,
        "detector": alarm.detector,
        "ordinal": alarm.ordinal,
        "outcome": alarm.outcome,
        "timestamp_seconds": alarm.event_ms / 1000,
        **{name: float(value) for name, value in values.items() if math.isfinite(value)},
        **({"judgement": judged(alarm.judgement)} if alarm.judgement else {}),
        **({"predictions": change_document(alarm.predictions)} if alarm.predictions else {}),
        **({} if alarm.predicted_ms is None else {"predicted_timestamp_seconds": alarm.predicted_ms / 1000}),
    }


def judged(judgement: Judgement) -> dict[str, object]:
    """A verdict as it is sent."""
    return {
        "opponent": judgement.opponent,
        "verdict": VERDICTS[judgement.verdict],
        "since_outcome": judgement.since,
        "since_timestamp_seconds": judgement.since_ms / 1000,
        "quick_labels_only": judgement.quick_labels_only,
    }
