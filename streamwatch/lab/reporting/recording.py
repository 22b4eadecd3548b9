"""A report's source from a replay: curves are looked at while it runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rich.console import Console

from streamwatch.core.series import Family, Report
from streamwatch.edge.web.routes.alarms import told
from streamwatch.edge.web.routes.comparisons import comparisons_of
from streamwatch.edge.web.routes.history import HistoryExporter
from streamwatch.edge.web.routes.json_api import by_model
from streamwatch.lab.replay.replay import replay
from streamwatch.lab.replay.spec import ReplaySpec
from streamwatch.lab.replay.tables import leftovers, unusable
from streamwatch.lab.reporting.source import ReportError, Source

POINTS: Final = 400
"""Points of a curve that are kept at most, at least half as many once there were so many."""
MOST_ALARMS: Final = 1_000
"""The latest, as in the API."""
_FIRST_SPACING: Final = 100


class Curves:
    """Looks at all estimates every so many outcomes, at ever fewer of them as a recording goes on."""

    def __init__(self) -> None:
        self._kept: list[tuple[Family, ...]] = []
        self._spacing = _FIRST_SPACING
        self._due = _FIRST_SPACING

    def look(self, outcomes: int, families: Callable[[], Sequence[Family]]) -> None:
        """Keep the estimates after so many outcomes of all models, if it is time to."""
        if outcomes < self._due:
            return
        self._kept.append(tuple(families()))
        if len(self._kept) >= POINTS:
            self._kept = self._kept[1::2]
            self._spacing *= 2
        self._due = outcomes + self._spacing

    def histories(self, last: Sequence[Family], models: Sequence[str]) -> dict[str, Any]:
        """Give the past of every model as the API would, one look a second; the last one is the end."""
        exporter = HistoryExporter(tier_points=POINTS + 2)
        for second, families in enumerate([*self._kept, tuple(last)]):
            exporter.observe(Report(families, 1_000 * (second + 1), {}))
        found = {name: exporter.render(None, (), "", {"model": name}) for name in models}
        return {name: json.loads(document) for name, document in found.items() if document is not None}


def from_replay(
    spec: ReplaySpec, versions: Mapping[str, str], settings: str, console: Console | None = None
) -> Source:
    """Replay recordings and tell everything that a report does.

    Raises
    ------
    RecordingError
        As `replay` does.
    ReportError
        If no line can be used.
    """
    curves = Curves()
    result = replay(replace(spec, look=curves.look), console)
    why = unusable(result)
    if why is not None:
        raise ReportError(why)
    trees, stream = by_model(result.families)
    models = {
        name: {"metrics": metrics, "details": result.details.get(name, {})}
        for name, metrics in sorted(trees.items())
    }
    return Source(
        name=result.source,
        made_ms=time.time_ns() // 1_000_000,
        versions=versions,
        models=models,
        histories=curves.histories(result.families, list(models)),
        alarms=[told(alarm) for alarm in reversed(result.alarms[-MOST_ALARMS:])],
        comparisons=comparisons_of(result.families),
        stream=stream,
        notes=leftovers(result),
        settings=settings,
    )
