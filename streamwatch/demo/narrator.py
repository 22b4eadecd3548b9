"""Narrator of the demo: describes the daemon's internal events and reports on a console."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamwatch.core.metrics.series import Report, detail_at
from streamwatch.core.specs import HEADLINE
from streamwatch.edge.web.routes.json_api import by_model
from streamwatch.history.samples import counted
from streamwatch.telemetry import (
    AlarmRaised,
    CatchUpCompleted,
    InternalEvent,
    KafkaLost,
    KafkaRecovered,
    KernelCompiling,
    KernelReady,
    StartedServing,
    Telemetry,
    TopicsAssigned,
    VerdictChanged,
)

WINDOW = "adwin:0.05"
"""Forgetting whose accuracies are shown: its window shrinks at a change, so that they follow quickly."""

_STATUS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """One model at the last report."""

    model: str
    outcomes: float
    accuracy: float
    persistent: float
    """Accuracy of no change, the previous label; this and `accuracy` are NaN while undefined."""
    pending: float
    judged: float = 0.0
    """Verdict: 1 better than no change, −1 worse, 0 open; with `by_cohorts` also against the majority."""
    since: float = 0.0
    """Number of the outcome from which the verdict holds, if it is not by cohorts."""
    by_cohorts: bool = False
    """Whether the verdict is by cohorts of prediction time."""

    @property
    def verdict(self) -> str:
        """Verdict in words."""
        if self.judged == 0.0:
            return "open: not shown to be better or worse than no change"
        if self.by_cohorts:
            better = self.judged > 0.0
            return f"{'better than no change and' if better else 'worse than no change or'} the majority"
        return f"{'better' if self.judged > 0.0 else 'worse'} than no change since outcome {self.since:,.0f}"


class Narrator:
    """Describes the internal events and reports of a daemon on a console.

    Parameters
    ----------
    console
        On a terminal, a table of models stays below the lines; elsewhere there are only lines.
    clock
        Seconds since the epoch, for the time at the beginning of each line.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.time) -> None:
        self._console = console
        self._clock = clock
        self._live = (
            Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        )
        self._summaries: list[ModelSummary] = []
        self._status_due = 0.0
        self.alarms = 0
        """Alarms narrated so far."""
        self.first_alarm_seconds: float | None = None
        """Seconds from the narrator's creation to the first alarm; None before."""
        self.serving = asyncio.Event()
        """Set once the daemon's page can be opened."""
        self._began = clock()

    def start(self) -> None:
        """Begin to draw the table, on a terminal."""
        if self._live is not None:
            self._live.start()

    def stop(self) -> None:
        """Stop drawing, and print the last table on a terminal."""
        if self._live is not None:
            self._live.stop()
            if self._summaries:
                self._console.print(self._table())

    def say(self, text: str) -> None:
        """Print a line with the time of day."""
        moment = time.strftime("%H:%M:%S", time.localtime(self._clock()))
        self._console.print(Text.assemble((f"{moment} ", "dim"), text), soft_wrap=True)

    def hear(self, event: InternalEvent) -> None:
        """Describe an internal event, if it is of interest in a demo."""
        match event:
            case KernelCompiling(seconds):
                self.say(
                    f"still compiling the estimators: {seconds:.0f} s"
                    if seconds
                    else "loading the estimators; a first start compiles them: about half a minute on two "
                    "cores, once"
                )
            case KernelReady(seconds):
                self.say(f"estimators ready after {seconds:.1f} s")
            case StartedServing(address):
                self.serving.set()
                self.say(
                    f"look at {address}/ · metrics at {address}/metrics · JSON at {address}/api/v1/models"
                )
            case TopicsAssigned(topics, partitions):
                self.say(f"reading {counted(partitions, 'partition')} of {', '.join(topics)}")
            case CatchUpCompleted(records):
                self.say(f"caught up: {records:,} records read")
            case KafkaLost(error=error):
                self.say(f"Kafka is gone ({error}); trying again")
            case KafkaRecovered(after_seconds):
                self.say(f"Kafka is back after {after_seconds:.1f} s")
            case AlarmRaised():
                self._narrate_alarm(event)
            case VerdictChanged():
                self._narrate_verdict(event)
            case InternalEvent():
                pass

    def publish(self, report: Report) -> None:
        """Redraw the table with a report; without a terminal, print accuracies every ten seconds."""
        self._summaries = summaries(report)
        if self._live is not None:
            self._live.update(self._table())
        elif self._summaries and self._clock() >= self._status_due:
            self._status_due = self._clock() + _STATUS_SECONDS
            self.say(" · ".join(f"{s.model} {_short(s.accuracy)}" for s in self._summaries) + self._guess())

    def _narrate_alarm(self, alarm: AlarmRaised) -> None:
        self.alarms += 1
        if self.first_alarm_seconds is None:
            self.first_alarm_seconds = self._clock() - self._began
        self.say(
            f"ALARM {alarm.model}: {alarm.detector} at outcome {alarm.outcome:,}: "
            f"error {_short(alarm.before)} → {_short(alarm.after)}"
        )

    def _narrate_verdict(self, change: VerdictChanged) -> None:
        """Print a changed verdict."""
        by_cohorts = change.basis == "cohorts"
        if change.verdict == "open":
            verdict = "is no longer shown to be better or worse than no change"
        elif not by_cohorts or (change.verdict == "worse" and change.opponent != "majority"):
            verdict = f"is now {change.verdict} than no change, the previous label"
        elif change.verdict == "worse":
            verdict = "is now worse than the majority, the most frequent class"
        else:
            verdict = "is now better than no change and the majority"
        if by_cohorts and change.status:
            verdict += f" ({change.status})"
        self.say(
            f"{change.model} {verdict}: since outcome {change.since_outcome:,}, decided at {change.outcome:,}"
        )

    def _guess(self) -> str:
        shares = [s.persistent for s in self._summaries if s.persistent == s.persistent]
        return f" · no change {_short(shares[0])}" if shares else ""

    def _table(self) -> RenderableType:
        table = Table(box=None, padding=(0, 2), title_justify="left")
        for heading in ("model", "outcomes", "pending", "accuracy", "no change", ""):
            table.add_column(heading, justify="left" if heading in {"model", ""} else "right")
        for s in self._summaries:
            style = "bold red" if s.judged < 0.0 else ""
            table.add_row(
                s.model,
                f"{s.outcomes:,.0f}",
                f"{s.pending:,.0f}",
                _short(s.accuracy),
                _short(s.persistent),
                s.verdict,
                style=style,
            )
        return Group("", table)


class NarratedTelemetry(Telemetry):
    """Telemetry whose internal events a narrator describes; only errors are also logged."""

    def __init__(self, narrator: Narrator) -> None:
        super().__init__(level="error")
        self._narrator = narrator

    def emit(self, event: InternalEvent) -> None:
        """Count the internal event and describe it."""
        super().emit(event)
        self._narrator.hear(event)


def summaries(report: Report) -> list[ModelSummary]:
    """Extract summaries of all models from a report, in the order of names."""
    models, _ = by_model(report.families)
    return [_summary(name, models[name]) for name in sorted(models) if "outcomes_total" in models[name]]


def _summary(model: str, metrics: Mapping[str, Any]) -> ModelSummary:
    def value(*path: str, otherwise: float = 0.0) -> float:
        found = detail_at(metrics, *path)
        return otherwise if found is None else float(found)

    nan = float("nan")
    return ModelSummary(
        model=model,
        outcomes=value("outcomes_total"),
        accuracy=value("accuracy_ratio", WINDOW, otherwise=nan),
        persistent=value("baseline_accuracy_ratio", "persistent", WINDOW, otherwise=nan),
        pending=value("pending_predictions"),
        judged=value("cohort_headline", otherwise=value("verdict", HEADLINE)),
        since=value("verdict_since_outcome", HEADLINE),
        by_cohorts="cohort_headline" in metrics,
    )


def _short(share: float) -> str:
    """Write a share as `76 %`; NaN as a dash."""
    if share != share:  # noqa: PLR0124 - NaN
        return "–"
    return f"{share:.0%}".replace("%", " %")
