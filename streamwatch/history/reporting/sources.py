"""Sources of a report: the API of a running daemon, or a replay."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import PurePath
from typing import Any, Final, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import msgspec
from rich.console import Console

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.routes.comparisons import comparisons_of
from streamwatch.edge.web.routes.history import HistoryExporter
from streamwatch.edge.web.routes.json_api import alarm_document, by_model
from streamwatch.history.replay.replay import ReplayResult, ReplaySpec, replay
from streamwatch.history.replay.tables import leftovers, unusable

# What a report is made of: documents shaped as those of the API, of a replay or of a running daemon.


Document: TypeAlias = Mapping[str, Any]
"""JSON of the API (docs/reference/api.md)."""


class ReportError(Exception):
    """A report cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that is reported, from one moment."""

    name: str
    """Of the recording, or the daemon's URL."""
    made_ms: int
    versions: Mapping[str, str]
    models: Mapping[str, Document]
    """`metrics` and `details` of every model, as in `/api/v1/models/{model}`."""
    histories: Mapping[str, Document]
    """As in `/api/v1/models/{model}/history`."""
    alarms: Sequence[Document]
    """As in `/api/v1/alarms`: the newest first."""
    comparisons: Sequence[Document]
    stream: Document
    """Numbers of no model."""
    notes: Sequence[str]
    """What was read, and what could not be."""
    remarks: Sequence[str]
    """Remarks that the reader must have beside the answer: models left out, a daemon that is not ready."""
    settings: str | None
    """YAML; None where they are not known."""
    now_s: float | None = None
    """When a daemon published it; None for a replay."""
    worse: Document | None = None
    """As in `/api/v1/worse`; None for a replay, which is of few models."""


# A report's source from the API of a running daemon.


MOST_MODELS: Final = 50
"""Models that are described; more make a page that nobody reads."""
_PATIENCE: Final = 30.0
_MOST_BYTES: Final = 256 * 1024 * 1024


def from_daemon(
    url: str, versions: dict[str, str], token: str | None = None, settings: str | None = None
) -> Source:
    """Ask a daemon for everything that a report shows.

    Parameters
    ----------
    url
        Where it serves: `http://127.0.0.1:9877`.
    versions
        Of what makes the report; the daemon's own is added.
    token
        Of `http.token_file`, or None.
    settings
        YAML to print; the API returns none.

    Raises
    ------
    ReportError
        If the URL is none, nobody answers there, or not as a daemon does.
    """
    base = base_of(url)
    listed = ask(base, "/api/v1/models", token)
    names = sorted(listed["models"], key=lambda name: -_outcomes(listed["models"][name]))
    notes = [f"The {MOST_MODELS} busiest of {len(names)} models."] if len(names) > MOST_MODELS else []
    shown = sorted(names[:MOST_MODELS])
    path = {name: path_of(name) for name in shown}
    health = ask(base, "/api/v1/health", token)
    if not health["ready"]:
        notes.append(f"Not ready: {'; '.join(health['reasons'])}.")
    running = health["stream"].get("build_info", {})
    daemon = {"streamwatch of the daemon": " ".join(_first(running))} if running else {}
    return Source(
        name=base,
        made_ms=time.time_ns() // 1_000_000,
        versions={**daemon, **versions},
        models={name: ask(base, path[name], token) for name in shown},
        histories={name: ask(base, f"{path[name]}/history", token) for name in shown},
        alarms=ask(base, "/api/v1/alarms?limit=1000", token)["alarms"],
        comparisons=ask(base, "/api/v1/comparisons", token)["comparisons"],
        stream=health["stream"],
        notes=(),
        remarks=notes,
        settings=settings,
        now_s=listed["published_timestamp_seconds"],
        worse=ask(base, "/api/v1/worse", token),
    )


def base_of(url: str) -> str:
    """Check the URL of a daemon; without a slash at its end. Raises ReportError."""
    base = url.rstrip("/")
    parts = urlsplit(base)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ReportError(f"expected a URL such as http://127.0.0.1:9877, got {url!r}")
    return base


def path_of(model: str) -> str:
    """Path of a model in the API; those named . and .. are asked for in its own way."""
    name = "%252E" * len(model) if model in {".", ".."} else quote(model, safe="")
    return f"/api/v1/models/{name}"


def model_paths(url: str, token: str | None) -> tuple[str, dict[str, str]]:
    """Ask a daemon for its models: its URL, and the path of each model. Raises ReportError."""
    base = base_of(url)
    return base, {name: path_of(name) for name in sorted(ask(base, "/api/v1/models", token)["models"])}


def _outcomes(document: dict[str, Any]) -> float:
    return float(document["metrics"].get("outcomes_total", 0.0))


def _first(tree: Any) -> list[str]:
    """Values of an info metric's labels: the keys down its only branch."""
    found: list[str] = []
    while isinstance(tree, dict) and tree:
        name = next(iter(tree))
        found.append(name)
        tree = tree[name]
    return found


def ask(base: str, path: str, token: str | None) -> Any:
    """Get a document of a daemon's API; raises ReportError."""
    request = Request(base + path, headers={} if token is None else {"Authorization": f"Bearer {token}"})  # noqa: S310  # the scheme was looked at
    try:
        with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
            body = answer.read(_MOST_BYTES + 1)
    except HTTPError as error:
        hint = "; --token-file names a file with the token" if error.code == 401 else ""
        raise ReportError(f"{base}{path} answered {error.code} {error.reason}{hint}") from error
    except (URLError, HTTPException, OSError) as error:
        raise ReportError(f"{base}{path} does not answer: {getattr(error, 'reason', error)}") from error
    if len(body) > _MOST_BYTES:
        raise ReportError(f"{base}{path} answered more than {_MOST_BYTES:,} bytes")
    try:
        return json.loads(body)
    except ValueError as error:
        raise ReportError(f"{base}{path} answered no JSON; is a streamwatch daemon there?") from error


# A report's source from a replay: curves are looked at while it runs.


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
    """Replay recordings and return everything that a report shows.

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
    """Tell everything of a replay at which `curves` looked.

    Raises
    ------
    ReportError
        If no line could be used.
    """
    why = unusable(result)
    if why is not None:
        raise ReportError(why)
    trees, stream = by_model(result.families)
    models = {
        name: {"metrics": metrics, "details": result.details.get(name, {})}
        for name, metrics in sorted(trees.items())
    }
    return Source(
        name=", ".join(PurePath(name).name for name in result.source.split(", ")),
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
    )
