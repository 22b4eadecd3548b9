"""Labels that settings give to models by pattern: who owns a model, how bad its alarms are, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec

from streamwatch.core.alerting.notification import Notification, Severity
from streamwatch.core.join.models import ModelActivity
from streamwatch.core.metrics import with_labels
from streamwatch.core.metrics.layered import Layered
from streamwatch.core.metrics.series import Family

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
