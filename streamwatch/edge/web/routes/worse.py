"""Models that are worse than no change or the majority, as a list of which few are expected to be false.

`GET /api/v1/worse?share=0.05`::

    {"published_timestamp_seconds": 1760000000.5, "share": 0.05, "pairs": 2000, "rule": "…",
     "worse": [{"model": "fraud-v3", "opponent": "majority", "e_value": 81200.0, "verdict": "worse",
                "since_timestamp_seconds": 1759000000.0, "earliest_timestamp_seconds": 1758990000.0,
                "latest_timestamp_seconds": 1759010000.0}]}

The largest e-value first, and since when the verdict holds where it is worse;
`core.estimators.registers.fleet` says what is promised. Without `share` it is .05. Models that are
judged by cohorts count, be there a headline yet or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from streamwatch.core.estimators.registers.fleet import RULE, SHARE, Listed, worse_pairs
from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.documents import Worse, WorseModel
from streamwatch.edge.web.json_text import encode
from streamwatch.edge.web.ports import Query, Route

Cohorts = Mapping[str, Mapping[str, Any]]
_BEGAN: Final = ("since_timestamp_seconds", "earliest_timestamp_seconds", "latest_timestamp_seconds")
"""Since when a verdict holds, with its interval of 80 %."""


class WorseExporter:
    """`/api/v1/worse`."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/worse",
            "Models that are worse than no change or the majority, of which few are expected to be false",
            "Worse",
            "models",
            (
                Query(
                    "share",
                    r"0?\.(?!0+$)[0-9]{1,6}",
                    {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "exclusiveMaximum": 1,
                        "default": SHARE,
                    },
                    "Largest expected share of pairs listed falsely",
                ),
            ),
        ),
    )

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes:
        """List the pairs that are worse."""
        del live, media_type
        share = float(asked.get("share", SHARE))
        judged = opponents_of({} if report is None else report.details)
        number = sum(len(opponents) for opponents in judged.values())
        pairs = [
            Listed(model, name, one["e_value"])
            for model, opponents in judged.items()
            for name, one in opponents.items()
            if "e_value" in one
        ]
        worse = [
            _worse(pair, judged[pair.model][pair.opponent]) for pair in worse_pairs(pairs, number, share)
        ]
        published = None if report is None else report.published_ms / 1000
        return encode(Worse(published, share, number, RULE, worse))


def _worse(pair: Listed, cohorts: Mapping[str, Any]) -> WorseModel:
    """A listed pair with its verdict, and since when it holds if that is worse."""
    verdict = cohorts.get("verdict", "open")
    began = {name: cohorts[name] for name in _BEGAN if verdict == "worse" and name in cohorts}
    return WorseModel(*pair, verdict, **began)


def opponents_of(details: Mapping[str, Mapping[str, object]]) -> Mapping[str, Cohorts]:
    """Verdicts by opponent of each model that is judged by cohorts."""
    return {
        model: cast("Cohorts", cohorts["opponents"])
        for model, of_model in details.items()
        if "headline" in of_model and isinstance(cohorts := of_model.get("cohorts"), Mapping)
    }
