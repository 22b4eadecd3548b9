"""How the daemon itself is: ready or why not, and every number that belongs to no model.

`GET /api/v1/health`::

    {"ready": false, "reasons": ["Kafka cannot be reached"], "published_timestamp_seconds": 1760000000.5,
     "stream": {"kafka_up": 0, "caught_up": 0, "consumer_lag_records": {"0": {"labels": 12}}, …}}

`stream` is that of `/api/v1/models`. Always 200; `/readyz` is the one with a status for probes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from streamwatch.core.series import Family, Report
from streamwatch.edge.web.json_text import JSON, encode
from streamwatch.edge.web.routes.json_api import by_model


class HealthExporter:
    """`/api/v1/health`.

    Parameters
    ----------
    unready
        Why the daemon is not ready, in words; asked in the rendering thread.
    """

    routes: Sequence[str] = ("/api/v1/health",)
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    public = False

    def __init__(self, unready: Callable[[], Sequence[str]]) -> None:
        self._unready = unready

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """JSON, whatever is asked for."""
        del accept, asked
        return JSON

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes:
        """Readiness and the numbers of no model."""
        del media_type, asked
        families = chain(live, () if report is None else report.families)
        _, stream = by_model(family for family in families if "model" not in family.labels)
        reasons = list(self._unready())
        return encode(
            {
                "ready": not reasons,
                "reasons": reasons,
                "published_timestamp_seconds": None if report is None else report.published_ms / 1000,
                "stream": stream,
            }
        )
