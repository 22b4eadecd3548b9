"""Sources of a report: the API of a running daemon, or a replay."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final, TypeAlias

import msgspec
from rich.console import Console

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.daemon_api import Address, answer, of_models, understood
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.comparisons import comparisons_of
from streamwatch.edge.web.routes.history import HistoryExporter
from streamwatch.edge.web.routes.json_api import alarm_document, by_model
from streamwatch.history.answers import documents_of
from streamwatch.history.replay.replay import ReplayResult, ReplaySpec, replay
from streamwatch.history.replay.tables import leftovers, unusable

# Contents of a report, from a replay or a running daemon: documents of the same form as the API's.


Document: TypeAlias = Mapping[str, Any]
"""JSON of the API (docs/reference/api.md)."""


class ReportError(Exception):
    """Report that cannot be built; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Contents of a report at one moment."""

    name: str
    """Name of the recordings, or URL of the daemon."""
    made_ms: int
    versions: Mapping[str, str]
    models: Mapping[str, Document]
    """`metrics` and `details` of every model, as in `/api/v1/models/{model}`."""
    histories: Mapping[str, Document]
    """History by model, as in `/api/v1/models/{model}/history`; absent of one that has none yet."""
    alarms: Sequence[Document]
    """Alarms as in `/api/v1/alarms`, the newest first."""
    comparisons: Sequence[Document]
    stream: Document
    """Series that are not of a model."""
    notes: Sequence[str]
    """Notes on how much was read, and what was unusable."""
    remarks: Sequence[str]
    """Remarks to show beside the answer: models left out, a daemon that is not ready."""
    settings: str | None
    """Settings as YAML; None if unknown."""
    now_s: float | None = None
    """Time at which a daemon published the report, in seconds since the epoch; None for a replay."""
    worse: Document | None = None
    """List of worse models, as in `/api/v1/worse`; None for a replay."""
    lacks_alarms: bool = False
    """Whether `alarms` has only the latest `MOST_ALARMS`, and there may be older ones."""

    def alarms_of(self, model: str) -> list[Document]:
        """Return the alarms of one model, the newest first."""
        return [alarm for alarm in self.alarms if alarm["model"] == model]


# Contents from the API of a running daemon.


MOST_ALARMS: Final = 1_000
"""Most alarms, the latest ones, as in the API."""
MOST_MODELS: Final = 50
"""Most models that are described."""


def from_daemon(address: Address, versions: Mapping[str, str], settings: str | None = None) -> Source:
    """Get the contents of a report from a daemon.

    Parameters
    ----------
    address
        Address of the daemon.
    versions
        Versions of this program and its packages; the daemon's own is added.
    settings
        Settings as YAML to include, as the API does not return them; or None.

    Raises
    ------
    DaemonUnreachable
        If no daemon answers there.
    """
    with understood(address):
        listed = answer(address, "/api/v1/models")
        names = sorted(listed["models"], key=lambda name: -_outcomes(listed["models"][name]))
        notes = [f"The {MOST_MODELS} busiest of {len(names)} models."] if len(names) > MOST_MODELS else []
        shown = sorted(names[:MOST_MODELS])
        models = of_models(address, shown)
        histories = of_models(address, models, "/history")  # a new model has none for a moment
        if gone := [name for name in shown if name not in models]:
            notes.append(f"Left out, as they retired or were reset meanwhile: {', '.join(gone)}.")
        health = answer(address, "/api/v1/health")
        alarms = answer(address, f"/api/v1/alarms?limit={MOST_ALARMS}")["alarms"]
        if not health["ready"]:
            notes.append(f"Not ready: {'; '.join(health['reasons'])}.")
        running = health["stream"].get("build_info", {})
        daemon = {"streamwatch of the daemon": " ".join(_first(running))} if running else {}
        return Source(
            name=address.base,
            made_ms=time.time_ns() // 1_000_000,
            versions={**daemon, **versions},
            models=models,
            histories=histories,
            alarms=alarms,
            comparisons=answer(address, "/api/v1/comparisons")["comparisons"],
            stream=health["stream"],
            notes=(),
            remarks=notes,
            settings=settings,
            now_s=listed["published_timestamp_seconds"],
            worse=answer(address, "/api/v1/worse"),
            lacks_alarms=len(alarms) >= MOST_ALARMS,
        )


def _outcomes(document: dict[str, Any]) -> float:
    return float(document["metrics"].get("outcomes_total", 0.0))


def _first(tree: Any) -> list[str]:
    """Return the label values of an info metric: the keys along its only branch."""
    found: list[str] = []
    while isinstance(tree, dict) and tree:
        name = next(iter(tree))
        found.append(name)
        tree = tree[name]
    return found


# Contents from a replay, during which the points of curves are collected.


POINTS: Final = 400
"""Number of points of a curve at which every other one is dropped."""
_FIRST_SPACING: Final = 100


class Curves:
    """Collects all estimates at points of a replay; their spacing doubles whenever there are `POINTS`."""

    def __init__(self) -> None:
        self._kept: list[tuple[Family, ...]] = []
        self._spacing = _FIRST_SPACING
        self._due = _FIRST_SPACING

    def look(self, outcomes: int, families: Callable[[], Sequence[Family]]) -> None:
        """Keep the estimates after this number of outcomes of all models, if a point is due."""
        if outcomes < self._due:
            return
        self._kept.append(tuple(families()))
        if len(self._kept) >= POINTS:
            self._kept = self._kept[1::2]
            self._spacing *= 2
        self._due = outcomes + self._spacing

    def histories(self, last: Sequence[Family], models: Sequence[str]) -> dict[str, Any]:
        """Render the history of every model as the API does, with a point each second; `last` is the end."""
        exporter = HistoryExporter(tier_points=POINTS + 2)
        for second, families in enumerate([*self._kept, tuple(last)]):
            exporter.observe(Report(families, 1_000 * (second + 1), {}))
        found = {name: exporter.render(Asked(None, {"model": name})) for name in models}
        return {name: json.loads(document) for name, document in found.items() if document is not None}


def from_replay(
    spec: ReplaySpec, versions: Mapping[str, str], settings: str, console: Console | None = None
) -> Source:
    """Replay recordings, and return the contents of a report on them.

    Raises
    ------
    RecordingError
        As `replay` does.
    ReportError
        If no line can be used.
    """
    curves = Curves()
    return of_result(replay(replace(spec, look=curves.look), console), curves, versions, settings)


def of_result(result: ReplayResult, curves: Curves, versions: Mapping[str, str], settings: str) -> Source:
    """Return the contents of a report on a replay, whose points are in `curves`.

    Raises
    ------
    ReportError
        If no line could be used.
    """
    why = unusable(result)
    if why is not None:
        raise ReportError(why)
    _, stream = by_model(result.families)
    models = dict(sorted(documents_of(result.families, result.details).items()))
    return Source(
        name=", ".join(PurePath(name).name for name in result.sources),
        made_ms=time.time_ns() // 1_000_000,
        versions=versions,
        models=models,
        histories=curves.histories(result.families, list(models)),
        alarms=[
            msgspec.to_builtins(alarm_document(alarm)) for alarm in reversed(result.alarms[-MOST_ALARMS:])
        ],
        comparisons=comparisons_of(result.families),
        stream=stream,
        notes=leftovers(result),
        remarks=(),
        settings=settings,
        lacks_alarms=len(result.alarms) > MOST_ALARMS,
    )
