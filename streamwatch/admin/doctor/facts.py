"""What is known of a daemon: its metrics at two moments, its models' details, its settings and topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from streamwatch.core.join.caveats import Repeats
from streamwatch.inspection.columns import Column
from streamwatch.inspection.ids import affix_of

Key: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
PREFIX = "streamwatch_"


@dataclass(frozen=True, slots=True)
class MetricSamples:
    """Samples of `/metrics` by name, without prefix, and labels."""

    samples: Mapping[Key, float]

    def value(self, name: str, **labels: str) -> float | None:
        """One sample with exactly these labels; None where there is none."""
        return self.samples.get((name, frozenset(labels.items())))

    def by(self, name: str, label: str, **given: str) -> dict[str, float]:
        """Sums of a metric by the values of one label, sorted, among samples that have `given`."""
        sums: dict[str, float] = {}
        for (found, labels), value in self.samples.items():
            if found == name and given.items() <= (named := dict(labels)).items() and label in named:
                sums[named[label]] = sums.get(named[label], 0.0) + value
        return dict(sorted(sums.items()))

    def total(self, name: str, **given: str) -> float:
        """Sum of a metric over all samples that have `given`; 0 where there is none."""
        return sum(
            value
            for (found, labels), value in self.samples.items()
            if found == name and given.items() <= dict(labels).items()
        )


def read(text: str) -> MetricSamples:
    """Read the text of `/metrics`.

    Raises
    ------
    ValueError
        It is not in Prometheus' text format.
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
    """Settings that rules look at; durations in milliseconds."""

    horizon_ms: int
    min_outcomes: int
    """Outcomes of a model before its alarms are announced."""
    utilities: Mapping[str, str] = field(default_factory=dict[str, str])
    """Utility by model, "" for all others: accuracy, balanced or costs."""
    order: str = "resolution"
    conflicts: str = "first"
    has_receivers: bool = True


@dataclass(frozen=True, slots=True)
class SampledTopic:
    """Newest records of a topic, decoded: ids by model ("" for labels), and what is wrong with them."""

    ids: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    invalid: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reason → `partition 0 offset 17` of one such record."""
    repeats: Repeats = field(default_factory=Repeats)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a rule may look at.

    `before` was read `seconds` earlier. `configured` and `topics` are None and empty where only the daemon
    was asked.
    """

    now: MetricSamples
    before: MetricSamples = field(default_factory=lambda: MetricSamples({}))
    seconds: float = 0.0
    reasons: Sequence[str] = ()
    """Why the daemon is not ready, in its words."""
    details: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """Of each model what is no number."""
    configured: Configured | None = None
    topics: Mapping[str, SampledTopic] = field(default_factory=dict[str, SampledTopic])

    @property
    def models(self) -> list[str]:
        """Models that have predicted."""
        return list(self.now.by("model_predictions_total", "model"))

    def forgetting(self, model: str) -> str | None:
        """Forgetting to judge by: the fading one if there is one, as on the page; None before any outcome."""
        names = list(self.now.by("accuracy_ratio", "forgetting", model=model))
        return next((name for name in names if name.startswith("fading:")), names[0] if names else None)


# One thing a look at a daemon has found, and the rule that found it.


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
"""What the subject of a finding about one model begins with; its name follows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the figure, the likely cause, and what to change, as settings where settings cure it."""

    weight: Weight
    subject: str
    observation: str
    cause: str
    change: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by name; `find` yields its findings, none where all is well or nothing is known."""

    name: str
    find: Callable[[Facts], Iterator[Finding]]


# How the ids of a model and those of labels are written, where a sample shows both.


def id_mismatch(facts: Facts, model: str) -> str | None:
    """Say what keeps ids of a model from meeting those of labels; None where a sample does not show it."""
    predicted = [id_ for topic in facts.topics.values() for id_ in topic.ids.get(model, ())]
    labelled = [id_ for topic in facts.topics.values() for id_ in topic.ids.get("", ())]
    if not predicted or not labelled:
        return None
    affix = affix_of(Column("predictions", predicted), Column("labels", labelled))
    if affix is not None:
        return f"{affix.note}: {predicted[-1]!r} beside {labelled[-1]!r}"
    return f"ids of its predictions look like {predicted[-1]!r}, those of labels like {labelled[-1]!r}"
