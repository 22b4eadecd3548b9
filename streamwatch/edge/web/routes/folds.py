"""Models that predict in folds, compared over them, at the last report under one forgetting.

`GET /api/v1/folds?forgetting=fading:0.999`::

    {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999",
     "mechanisms": ["landmark", "fading:0.999"],
     "accuracies": {"a": {"0": 0.91, "1": 0.9}, "b": {"0": 0.88, "1": 0.89}},
     "models": {"a": {"folds": 2, "mean": 0.905, "deviation": 0.007}, "b": …},
     "pairs": [{"first": "a", "second": "b", "folds": 2, "difference": 0.02,
                "sign": {"wins": 2, "losses": 0, "p": 0.5},
                "wilcoxon": {"positive": 3.0, "negative": 0.0, "p": 0.5}}],
     "ranks": null, "left_out": 0}

`ranks` has Friedman's test, Nemenyi's critical difference and its `diagram` (SVG) over three or more models.
p-values are exact and two-sided and hold for one look; undefined values are absent. Under a forgetting that
is not one of `mechanisms` no model has an accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from streamwatch.core.series import Family, Report
from streamwatch.edge.web.json_text import JSON, encode


class FoldsExporter:
    """`/api/v1/folds`: tests over folds."""

    routes: Sequence[str] = ("/api/v1/folds",)
    query: Mapping[str, str] = {"forgetting": ".{1,64}"}
    headers: Mapping[str, str] = {}
    public = False

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """JSON, whatever is asked for."""
        del accept, asked
        return JSON

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes:
        """Every comparison under one forgetting; without accuracies under one that is not used."""
        # scipy.stats takes long to load, and few ask.
        from streamwatch.core.estimators.folds.comparison import compared  # noqa: PLC0415

        del live, media_type
        found = _folds(report)
        mechanisms = list(dict.fromkeys(name for folds in found.values() for name in folds))
        fading = next((name for name in mechanisms if name.startswith("fading:")), None)
        forgetting = asked.get("forgetting") or fading or next(iter(mechanisms), None)
        accuracies = {model: folds.get(forgetting or "", {}) for model, folds in found.items()}
        return encode(
            {
                "published_timestamp_seconds": report.published_ms / 1000 if report else None,
                "forgetting": forgetting,
                "mechanisms": mechanisms,
                "accuracies": accuracies,
                **compared(accuracies),
            }
        )


def _folds(report: Report | None) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """Accuracy by model, mechanism and fold."""
    details: Mapping[str, Mapping[str, Any]] = {} if report is None else report.details
    return {
        model: cast("Mapping[str, Mapping[str, float]]", shown["folds"])
        for model, shown in sorted(details.items())
        if "folds" in shown
    }
