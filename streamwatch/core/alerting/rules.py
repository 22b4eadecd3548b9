"""Rules by patterns of names: which alarms are notified, with which severity, and the labels of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec

from streamwatch.core.alerting.notification import Notification, Severity
from streamwatch.core.join.models import ModelActivity
from streamwatch.core.metrics import with_labels
from streamwatch.core.metrics.series import Family, Layered
from streamwatch.core.specs import DAY_MS

EARLY_HINT: Final = "early_hint"
"""Name of the detector by which rules apply to early hints."""
COMPARISON: Final = "comparison"
"""Name of the detector by which rules apply to verdicts on challengers."""


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """Rule for alarms of the models and detectors that match."""

    detector: str = "*"
    """Name, or a pattern with * ? [abc]."""
    model: str = "*"
    """Name, or a pattern."""
    severity: Severity = "warning"
    cooldown_ms: int = 600_000
    """Event time around an announced alarm in which no other of its model and detector is announced.

    A verdict that begins to alternate is announced all the same.
    """
    min_outcomes: int = 100
    """Number of outcomes that a model must have had before its alarms are announced.

    A verdict that still holds by then is announced then.
    """
    severity_given: bool = False
    """Whether settings choose the severity; then it also holds where accuracy misleads."""

    def severity_of(self, *, judged: bool, misleads: bool) -> Severity:
        """Severity of an alarm.

        Parameters
        ----------
        judged
            Whether the alarm is of a verdict.
        misleads
            Whether the model is judged by accuracy although accuracy misleads; a verdict is then notified as
            information, unless a severity was chosen for the model.
        """
        return "info" if judged and misleads and not self.severity_given else self.severity

    def matches(self, model: str, detector: str) -> bool:
        """Tell whether the rule applies to a model and detector; upper and lower case of patterns differ."""
        return fnmatchcase(model, self.model) and fnmatchcase(detector, self.detector)


@dataclass(frozen=True, slots=True)
class FleetDigestSpec:
    """Digests of the models that are worse by the fleet's rule."""

    every_ms: int = DAY_MS
    """Host time between two digests, which are made at its multiples since 1970."""
    size: int = 20
    """Most pairs named of those listed, of those added and of those that left; all are counted."""
    send_empty: bool = False
    """Whether a digest is sent if nothing is listed and nothing has left."""


@dataclass(frozen=True, slots=True)
class AlarmsSpec:
    """Rules for alarms, and durations in milliseconds after which they change state."""

    rules: tuple[AlarmRule, ...] = ()
    """Rules; the first that matches applies."""
    otherwise: AlarmRule = AlarmRule()
    """Rule where none matches."""
    resolve_timeout_ms: int = DAY_MS
    """Host time after the newest alarm, after which it is resolved and its error taken for the new level."""
    stale_after_ms: int = 3_600_000
    """Greatest age of an alarm found in a backlog at which it is notified by itself, not in a digest."""
    digest_interval_ms: int = 600_000
    """Host time from the first alarm in a digest until it is issued, if the backlog is still being read."""
    incident_outcomes: int = 2_500
    """Distance in outcomes up to which alarms of a model are of one change (`docs/evidence/incidents.md`)."""
    digest_size: int = 20
    """Most alarms, and most pairs of model and detector, listed in a digest; all are counted."""
    retraining_after_ms: int | None = None
    """Host time for which a model must have been worse until its retraining is announced; None: never."""
    fleet_digest: FleetDigestSpec | None = None
    """Digests of the models that are worse; None if no receiver wants them."""
    model_severities: tuple[tuple[str, Severity], ...] = ()
    """Patterns of models, and the severity of their alarms if no rule chooses one; the first that matches."""

    def rule(self, model: str, detector: str) -> AlarmRule:
        """Find the rule for alarms of a model's detector."""
        found = next((rule for rule in self.rules if rule.matches(model, detector)), self.otherwise)
        if found.severity_given:
            return found
        chosen = (severity for name, severity in self.model_severities if fnmatchcase(model, name))
        severity = next(chosen, None)
        return found if severity is None else replace(found, severity=severity, severity_given=True)


# Labels that settings give to models by pattern: who owns a model, how bad its alarms are, what to do.


INFO: Final = "model_info"
"""Metric that has the labels of a model; its value is 1."""
_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class ModelRule:
    """Rule that gives labels, a severity and a runbook to the models whose names match."""

    model: str = "*"
    """Name, or a pattern with * ? [abc]; upper and lower case differ."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    severity: Severity | None = None
    runbook_url: str | None = None


class OfModel(NamedTuple):
    """Labels, severity and runbook of one model."""

    labels: Mapping[str, str]
    severity: Severity | None = None
    runbook_url: str | None = None


class ModelLabels:
    """Finds the labels of models.

    If several rules match a model, the first that sets a label decides its value; likewise for the severity
    and the runbook.

    Parameters
    ----------
    rules
        Rules, in their order.
    """

    def __init__(self, rules: Sequence[ModelRule] = ()) -> None:
        self._rules = rules
        self.names: tuple[str, ...] = tuple(sorted({name for rule in rules for name in rule.labels}))
        """Names of all labels that any rule gives."""
        self._found: dict[str, OfModel] = {}

    def of(self, model: str) -> OfModel:
        """Return the labels, the severity and the runbook of a model."""
        found = self._found.get(model)
        if found is None:
            if len(self._found) >= _MOST_REMEMBERED:
                self._found.clear()
            found = self._found[model] = self._find(model)
        return found

    def _find(self, model: str) -> OfModel:
        labels: dict[str, str] = {}
        severity: Severity | None = None
        runbook: str | None = None
        for rule in self._rules:
            if fnmatchcase(model, rule.model):
                labels = {**rule.labels, **labels}
                severity = severity or rule.severity
                runbook = runbook or rule.runbook_url
        return OfModel(dict(sorted(labels.items())), severity, runbook)

    def all_stamped(self, notifications: list[Notification]) -> list[Notification]:
        """Add the labels and the runbook of its model to each of many notifications, as `stamped` does."""
        return list(map(self.stamped, notifications)) if self._rules else notifications

    def stamped(self, notification: Notification) -> Notification:
        """Add the labels and the runbook of its model to a notification; a digest stays as it is."""
        found = self.of(notification.model) if notification.model else OfModel({})
        if not found.labels and found.runbook_url is None:
            return notification
        return msgspec.structs.replace(notification, labels=found.labels, runbook_url=found.runbook_url)

    def family(self, models: Mapping[str, ModelActivity], topics: TopicsOfRun) -> Family:
        """Build the metric `model_info`, with which queries join other series of a model.

        Parameters
        ----------
        models
            Activity of every model that is watched.
        topics
            Topics of predictions and labels for models whose own are unknown.
        """
        samples: list[tuple[Mapping[str, str], float]] = []
        for name, activity in sorted(models.items()):
            found = self.of(name)
            own = {
                "label_topic": activity.label_topic or topics.labels,
                "model": name,
                "severity": found.severity or "",
                "topic": activity.topic or topics.predictions,
            }
            samples.append(({**found.labels, **own}, 1.0))
        return with_labels(INFO, self.names, samples)

    def details(self, details: Mapping[str, Mapping[str, object]]) -> Mapping[str, Mapping[str, object]]:
        """Add labels and runbooks to the other details of models."""
        if not self._rules:
            return details

        def change(model: str, shown: Mapping[str, object]) -> Mapping[str, object]:
            found = self.of(model)
            added: dict[str, object] = {"labels": found.labels} if found.labels else {}
            if found.runbook_url is not None:
                added["runbook_url"] = found.runbook_url
            return {**shown, **added} if added else shown

        return Layered(details, (), change)


class TopicsOfRun(NamedTuple):
    """Topic of predictions and topic of labels; each is empty unless there is exactly one."""

    predictions: str = ""
    labels: str = ""
