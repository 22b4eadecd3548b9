"""The past of one model as it is kept in the state, coarser as it ages; a restart forgets none of it.

`GET /api/v1/models/{model}/past`::

    {"model": "m", "days": 30, "starts": [1759996800, 1759999200, 1760000040], "seconds": [3600, 600, 60],
     "outcomes": [1200, 300, 17], "hits": [1092, 270, 15], "accuracy": [0.91, 0.9, 0.8823529],
     "persistent": [0.85, 0.85, 0.8235294]}

One entry for each stretch of time in which the model had outcomes (event time), the oldest first, none
overlapping another: hours of the last `days` (`monitors.history_days`), ten minutes of the last two days,
minutes of the last four hours, counted back from the model's latest outcome. `hits` are the outcomes whose
class was predicted. `accuracy` and `persistent` (no change: the previous label) are those of the stretch
alone, nothing is faded; `persistent` is null for models that predict in several folds. Outcomes dated more
than an hour after the report are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from streamwatch.core.past import HOUR_S, Stretches, merged, tiers
from streamwatch.core.series import Family, Report
from streamwatch.edge.web.json_text import JSON, encode
from streamwatch.edge.web.routes.json_api import names_of
from streamwatch.edge.web.segments import named


class PastExporter:
    """`/api/v1/models/{model}/past`: counts of the last report, by stretches of time."""

    routes: Sequence[str] = ("/api/v1/models/{model:.+}/past",)
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    public = False

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """JSON, whatever is asked for."""
        del accept, asked
        return JSON

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes | None:
        """The model's past, empty where none is kept; None for a model nobody has seen."""
        del live, media_type
        if report is None:
            return None
        model = named(asked["model"], lambda: names_of(report.families))
        views = report.pasts.get(model, ())
        if not views and model not in names_of(report.families):
            return None
        days = report.history_days
        shown = seamless(merged(views, days), days, report.published_ms // 1_000 + HOUR_S)
        outcomes = shown["outcomes"].astype(np.int64)
        return encode(
            {
                "model": model,
                "days": days,
                "starts": shown["start_s"].tolist(),
                "seconds": shown["seconds"].tolist(),
                "outcomes": outcomes.tolist(),
                "hits": shown["right"].tolist(),
                "accuracy": np.round(shown["right"] / outcomes, 7).tolist(),
                "persistent": [None] * len(shown)
                if len(views) > 1
                else np.round(shown["no_change"] / outcomes, 7).tolist(),
            }
        )


def seamless(kept: Stretches, days: int, until_s: int) -> Stretches:
    """Choose the finest stretch that there is of every time, by start; none that starts after `until_s`."""
    kept = kept[kept["start_s"] <= until_s]
    if not len(kept):
        return kept
    end_s = int(kept["start_s"].max())
    chosen: list[Stretches] = []
    until_s = end_s + HOUR_S
    lengths = tiers(days)
    for place, (seconds, slots) in enumerate(lengths):
        # A tier begins where a stretch of the next one does, lest an hour be shown in part.
        coarser = lengths[place + 1][0] if place + 1 < len(lengths) else seconds
        first_s = (end_s // seconds - slots + 1) * seconds
        from_s = -(-first_s // coarser) * coarser
        own = kept[(kept["seconds"] == seconds) & (kept["start_s"] >= from_s) & (kept["start_s"] < until_s)]
        chosen.append(own)
        until_s = from_s
    found = np.concatenate(chosen)
    return found[np.argsort(found["start_s"], kind="stable")]
