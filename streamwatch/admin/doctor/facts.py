"""Facts about a daemon: metrics at two times, details of models, settings and samples of topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Final, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from streamwatch.core.join.caveats import Repeats
from streamwatch.inspection.columns import Column
from streamwatch.inspection.ids import affix_of

_Labels: TypeAlias = frozenset[tuple[str, str]]
Key: TypeAlias = tuple[str, _Labels]
PREFIX = "streamwatch_"


@dataclass(frozen=True)
class MetricSamples:
    """Samples of `/metrics`."""

    samples: Mapping[Key, float]
    """Values by name, without the prefix `streamwatch_`, and labels."""

    def value(self, name: str, **labels: str) -> float | None:
        """Return the sample with exactly these labels; None without one."""
        return self.samples.get((name, frozenset(labels.items())))

    def by(self, name: str, label: str, **given: str) -> dict[str, float]:
        """Sum a metric by the values of one label, in their order, over samples with the labels `given`."""
        sums: dict[str, float] = {}
        for labels, value in self._having(name, given):
            if (found := dict(labels).get(label)) is not None:
                sums[found] = sums.get(found, 0.0) + value
        return dict(sorted(sums.items()))

    def total(self, name: str, **given: str) -> float:
        """Sum a metric over all samples with the labels `given`; 0 without any."""
        return sum(value for _, value in self._having(name, given))

    def _having(self, name: str, given: Mapping[str, str]) -> Iterator[tuple[_Labels, float]]:
        pairs = frozenset(given.items())
        for labels, value in self._by_label.get((name, next(iter(given.items()), None)), ()):
            if pairs <= labels:
                yield labels, value

    @cached_property
    def _by_label(self) -> Mapping[tuple[str, tuple[str, str] | None], list[tuple[_Labels, float]]]:
        """Samples by name and each of their labels, and by name alone: rules ask for each model's."""
        found: defaultdict[tuple[str, tuple[str, str] | None], list[tuple[_Labels, float]]]
        found = defaultdict(list)
        for (name, labels), value in self.samples.items():
            sample = (labels, value)
            for pair in (None, *labels):
                found[name, pair].append(sample)
        return found


def read(text: str) -> MetricSamples:
    """Parse the text of `/metrics`.

    Raises
    ------
    ValueError
        If it is not in Prometheus' text format.
    """
    return MetricSamples(
        {
            (sample.name.removeprefix(PREFIX), frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


@dataclass(frozen=True, slots=True)
class Configured:
    """Settings that rules read."""

    horizon_ms: int
    min_outcomes: int
    """Outcomes that a model needs before its alarms are announced."""
    utilities: Mapping[str, str] = field(default_factory=dict[str, str])
    """Utility (accuracy, balanced or costs) by pattern of models; the first that matches counts."""
    order: str = "resolution"
    """`join.order`."""
    conflicts: str = "first"
    """`join.conflicts`."""
    has_receivers: bool = True
    """Whether `alerts.receivers` is not empty."""


@dataclass(frozen=True, slots=True)
class SampledTopic:
    """Result of decoding the newest records of a topic."""

    ids: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Ids by model; those of labels under ""."""
    invalid: Mapping[str, str] = field(default_factory=dict[str, str])
    """Location of a rejected record, such as `partition 0 offset 17`, by reason."""
    repeats: Repeats = field(default_factory=Repeats)
    """Repeated ids by model."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that rules read."""

    now: MetricSamples
    """Metrics of the second reading."""
    before: MetricSamples = field(default_factory=lambda: MetricSamples({}))
    """Metrics of the first reading."""
    seconds: float = 0.0
    """Time between both readings."""
    reasons: Sequence[str] = ()
    """Reasons why the daemon is not ready."""
    details: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """`details` of the API by model."""
    configured: Configured | None = None
    """Settings; None if they are not known."""
    topics: Mapping[str, SampledTopic] = field(default_factory=dict[str, SampledTopic])
    """Samples by topic; empty if settings are not known."""

    @property
    def models(self) -> list[str]:
        """Models that have predicted."""
        return list(self.now.by("model_predictions_total", "model"))

    def forgetting(self, model: str) -> str | None:
        """Return the forgetting to judge by: fading, else the first by name; None before any outcome."""
        names = list(self.now.by("accuracy_ratio", "forgetting", model=model))
        return next((name for name in names if name.startswith("fading:")), names[0] if names else None)

    def baselines(self, model: str, least: int) -> tuple[float, float] | None:
        """Return the accuracies of the previous label and of the majority, under the same forgetting.

        None with fewer outcomes than `least`, or if one is undefined.
        """
        forgetting = self.forgetting(model)
        if forgetting is None or (self.now.value("outcomes_total", model=model) or 0.0) < least:
            return None
        found = self.now.by("baseline_accuracy_ratio", "baseline", model=model, forgetting=forgetting)
        persistent, majority = found.get("persistent"), found.get("majority")
        return None if persistent is None or majority is None else (persistent, majority)


class Weight(IntEnum):
    """Importance of a finding, the most important first."""

    NOTHING_WORKS = 0
    """Nothing is read or shown."""
    NOTHING_TRUE = 1
    """Numbers of a model or topic are missing or mean nothing."""
    INCOMPLETE = 2
    """Events or notifications are left out."""
    AT_RISK = 3
    """It works now and may not later."""
    WORTH_KNOWING = 4
    """Numbers are right and may mislead."""


MODEL: Final = "model "
"""Beginning of the subject of a finding about one model, before the model's name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Problem found by a rule: observed figure, likely cause, and the change (often settings) that helps."""

    weight: Weight
    subject: str
    observation: str
    cause: str
    change: str
    rule: str = ""
    """Name of the rule, which is that of its function; `examine` sets it."""


def id_mismatch(facts: Facts, model: str) -> str | None:
    """Describe how ids of a model and ids of labels differ in samples; None if one side has no sample."""
    predicted = [id_ for topic in facts.topics.values() for id_ in topic.ids.get(model, ())]
    labelled = [id_ for topic in facts.topics.values() for id_ in topic.ids.get("", ())]
    if not predicted or not labelled:
        return None
    affix = affix_of(Column("predictions", predicted), Column("labels", labelled))
    if affix is not None:
        return f"{affix.note}: {predicted[-1]!r} beside {labelled[-1]!r}"
    return f"ids of its predictions look like {predicted[-1]!r}, those of labels like {labelled[-1]!r}"
