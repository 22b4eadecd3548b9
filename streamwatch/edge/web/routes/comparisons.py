"""Two models on the same ids: the verdict on each challenger, and what is known of both.

`GET /api/v1/comparisons`::

    {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999", "rule": "better: …",
     "comparisons": [{"champion": "fraud-v3", "challenger": "fraud-v4", "pairs": 1200,
                      "last_pair_timestamp_seconds": 1759999990.0,
                      "verdict": "better", "verdict_since_timestamp_seconds": 1759990000.0,
                      "verdict_since_pair": 17, "lead": 0.06, "lead_lower": 0.03, "lead_upper": 0.09,
                      "evidence": {"better": 0.0, "worse": 0.0}, "lead_dispersion": 1.1,
                      "measures": {"landmark": {"q": 0.31, "mcnemar": 21.4, "mcnemar_calibrated": 21.4,
                                                "champion_error_ratio": 0.2, "challenger_error_ratio": 0.14,
                                                "champion_right_alone": 20, "challenger_right_alone": 90,
                                                "effective_sample_size": 1200}}}]}

By champion, the challenger that leads most first. Positive numbers speak for the challenger. Q and McNemar's
statistic describe: watched all the time they pass any level in the end, which the verdict does not. Undefined
values are absent. `forgetting` is the one that the page shows first.

`GET /api/v1/comparisons/{champion}/history?since=1759999990`::

    {"champion": "fraud-v3", "forgetting": "fading:0.999", "timestamps": [1759999999.5, 1760000000.5],
     "challengers": {"fraud-v4": {"q": [0.3, 0.31], "lead": [null, 0.06]}}}

the recent past, kept in memory as that of models is: Q under that forgetting, and the mean lead; 404 for a
model that nothing is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamwatch.core.series import Family, Histogram, Report
from streamwatch.edge.web.json_text import JSON, encode, number
from streamwatch.edge.web.routes.alarms import VERDICTS
from streamwatch.edge.web.routes.history import TIER_POINTS, TIER_SECONDS, Frame, Tier
from streamwatch.edge.web.routes.json_api import COMPARISON_NAMES
from streamwatch.edge.web.routes.overview import main_forgetting
from streamwatch.edge.web.segments import named

RULE = (
    "better or worse: currently, of the challenger beside the champion on the same ids, by the utility that "
    "monitors.utility sets for the champion; open: neither is shown. A verdict is false within "
    "monitors.verdict_outcomes pairs with probability monitors.confidence_delta at most, however often one "
    "looks"
)
MAX_VALUES = 2_000_000
_PREFIX = "comparison_"
_CHARTED = ("q", "lead")
_BETWEEN = "\x1f"
"""Between champion and challenger in the name of a row: no model's name has a control character."""


class ComparisonsExporter:
    """`/api/v1/comparisons`, and the recent past of those with one champion."""

    routes: Sequence[str] = ("/api/v1/comparisons", "/api/v1/comparisons/{champion:.+}/history")
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
        """Every comparison, or the past of one champion's; None for a model that nothing is compared with."""
        del live, media_type
        if "champion" in asked:
            return self._past(asked)
        families = () if report is None else report.families
        return encode(
            {
                "published_timestamp_seconds": None if report is None else report.published_ms / 1000,
                "forgetting": shown_forgetting(families),
                "rule": RULE,
                "comparisons": comparisons_of(families),
            }
        )

    def _past(self, asked: Mapping[str, str]) -> bytes | None:
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


def comparisons_of(families: Iterable[Family]) -> list[dict[str, object]]:
    """Every comparison that a report has series of, as documents: by champion, the largest lead first."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    for family in families:
        if family.name not in COMPARISON_NAMES:
            continue
        name = family.name.removeprefix(_PREFIX).removesuffix("_total")
        label = family.labels[2] if len(family.labels) > 2 else None
        for (challenger, champion, *more), value in family.samples:
            if isinstance(value, Histogram) or math.isnan(value):
                continue
            document = found.setdefault(
                (champion, challenger), {"champion": champion, "challenger": challenger}
            )
            if label is None:
                document[name] = number(value)
                continue
            branch = document.setdefault("evidence" if label == "side" else "measures", {})
            assert isinstance(branch, dict)  # noqa: S101 - made so above
            if label == "side":
                branch[more[0]] = number(value)
            else:
                branch.setdefault(more[0], {})[name] = number(value)
    for document in found.values():
        said = document.get("verdict", 0)
        document["verdict"] = VERDICTS[int(said) if isinstance(said, int | float) else 0]
        document.setdefault("measures", {})
        document.setdefault("evidence", {})
    return sorted(found.values(), key=_place)


def shown_forgetting(families: Iterable[Family]) -> str | None:
    """The forgetting that is shown first: one that fades, if there is one."""
    errors = next((f for f in families if f.name == "comparison_champion_error_ratio"), None)
    return main_forgetting(errors)


def _place(document: Mapping[str, object]) -> tuple[str, float, str]:
    lead = document.get("lead")
    least = -lead if isinstance(lead, int | float) else 2.0  # those without a lead after all others
    return str(document["champion"]), least, str(document["challenger"])


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
