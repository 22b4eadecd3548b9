"""Route of the list of models that are worse than no change or the majority, with few false ones.

`GET /api/v1/worse?share=0.05`::

    {"published_timestamp_seconds": 1760000000.5, "share": 0.05, "pairs": 2000, "rule": "…",
     "worse": [{"model": "fraud-v3", "opponent": "majority", "e_value": 81200.0, "verdict": "worse",
                "since_timestamp_seconds": 1759000000.0, "earliest_timestamp_seconds": 1758990000.0,
                "latest_timestamp_seconds": 1759010000.0}]}

Sorted by e-value, the largest first. The time since when the verdict holds is present if the verdict is
`worse` now. `core.estimators.registers.fleet` states what the list guarantees. `share` is .05 by default. All
models that are judged by cohorts count, also without a headline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from streamwatch.core.estimators.registers.fleet import RULE, SHARE, Listed, worse_pairs
from streamwatch.core.metrics.layered import with_parts
from streamwatch.edge.web.documents import Worse, WorseModel
from streamwatch.edge.web.json_text import encode
from streamwatch.edge.web.ports import Asked, Query, Route

Cohorts = Mapping[str, Mapping[str, Any]]
_BEGAN: Final = ("since_timestamp_seconds", "earliest_timestamp_seconds", "latest_timestamp_seconds")
"""Fields with the time since when a verdict holds, and its 80 % interval."""


class WorseExporter:
    """Exporter of `/api/v1/worse`."""

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

    def render(self, asked: Asked) -> bytes:
        """Render the list of worse pairs."""
        share = float(asked.values.get("share", SHARE))
        judged = opponents_of(asked.details)
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
        return encode(Worse(asked.published, share, number, RULE, worse))


def _worse(pair: Listed, cohorts: Mapping[str, Any]) -> WorseModel:
    """Make the document of a listed pair, with its verdict now, and since when it holds if it is worse."""
    verdict = cohorts.get("verdict", "open")
    began = {name: cohorts[name] for name in _BEGAN if verdict == "worse" and name in cohorts}
    return WorseModel(*pair, verdict, **began)


def opponents_of(details: Mapping[str, Mapping[str, object]]) -> Mapping[str, Cohorts]:
    """Return model → opponent → verdict, of the models that are judged by cohorts."""
    return {
        model: cast("Cohorts", cohorts["opponents"])
        for model in details
        if "headline" in (of_model := with_parts(details, model, ("cohorts",)))
        and isinstance(cohorts := of_model.get("cohorts"), Mapping)
    }
