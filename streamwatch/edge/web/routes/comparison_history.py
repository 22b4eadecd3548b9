"""The recent past of comparisons, kept in memory for the status page's charts; a restart forgets it.

`GET /api/v1/comparisons/{champion}/history?since=1759999990`::

    {"champion": "fraud-v3", "forgetting": "fading:0.999", "timestamps": [1759999999.5, 1760000000.5],
     "challengers": {"fraud-v4": {"q": [0.3, 0.31], "lead": [null, 0.06]}}}

Q under that forgetting, and the mean lead, in the tiers of `history`; `null` where undefined; 404 for a model
that nothing is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from streamwatch.core.series import Family, Report
from streamwatch.edge.web.json_text import JSON, encode
from streamwatch.edge.web.routes.comparisons import comparisons_of, shown_forgetting
from streamwatch.edge.web.routes.history import TIER_POINTS, TIER_SECONDS, Frame, Tier
from streamwatch.edge.web.segments import named

MAX_VALUES = 2_000_000
_CHARTED = ("q", "lead")
_BETWEEN = "\x1f"
"""Between champion and challenger in the name of a row: no model's name has a control character."""


class ComparisonHistory:
    """Observes reports and answers for one champion at a time; both in the rendering thread."""

    routes: Sequence[str] = ("/api/v1/comparisons/{champion:.+}/history",)
    query: Mapping[str, str] = {"since": r"[0-9]{1,12}(\.[0-9]{1,9})?"}
    headers: Mapping[str, str] = {}
    public = False

    def __init__(self, max_values: int = MAX_VALUES, tier_points: int = TIER_POINTS) -> None:
        self._tiers = tuple(Tier(s, max_values // len(TIER_SECONDS), tier_points) for s in TIER_SECONDS)
        self._forgetting: str | None = None

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """JSON, whatever is asked for."""
        del accept, asked
        return JSON

    def observe(self, report: Report) -> None:
        """Keep the report where a tier is due and something is compared."""
        due = [tier for tier in self._tiers if tier.is_due(report.published_ms)]
        if not due or (compared := comparisons_of(report.families)) == []:
            return
        self._forgetting = shown_forgetting(report.families)
        rows = {f"{each['champion']}{_BETWEEN}{each['challenger']}": at for at, each in enumerate(compared)}
        values = np.array([[_value(each, name, self._forgetting) for name in _CHARTED] for each in compared])
        for tier in due:
            tier.keep(Frame(report.published_ms, rows, values.astype(np.float32)))

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes | None:
        """The past of a champion's comparisons; None for a model that nothing is compared with."""
        del report, live, media_type
        since_ms = round(float(asked.get("since", 0)) * 1000)
        merged = sorted({f.published_ms: f for tier in self._tiers for f in tier.frames}.items())
        pairs = {
            (champion, challenger)
            for _, frame in merged
            for champion, _, challenger in (row.partition(_BETWEEN) for row in frame.rows)
        }
        champion = named(asked["champion"], lambda: {each for each, _ in pairs})
        challengers = sorted(challenger for each, challenger in pairs if each == champion)
        if not challengers:
            return None
        frames = [frame for published_ms, frame in merged if published_ms > since_ms]
        return encode(
            {
                "champion": champion,
                "forgetting": self._forgetting,
                "timestamps": [frame.published_ms / 1000 for frame in frames],
                "challengers": {
                    challenger: {
                        name: [_kept(frame, champion, challenger, at) for frame in frames]
                        for at, name in enumerate(_CHARTED)
                    }
                    for challenger in challengers
                },
            }
        )


def _value(document: Mapping[str, object], name: str, forgetting: str | None) -> float:
    """Q or the lead of a comparison; NaN where undefined."""
    found = document.get(name)
    measures = document["measures"]
    if name == "q" and isinstance(measures, dict):
        found = measures.get(forgetting, {}).get("q")
    return float(found) if isinstance(found, int | float) else math.nan


def _kept(frame: Frame, champion: str, challenger: str, column: int) -> float | None:
    row = frame.rows.get(f"{champion}{_BETWEEN}{challenger}")
    value = math.nan if row is None else float(frame.values[row, column])
    return float(f"{value:.7g}") if math.isfinite(value) else None
