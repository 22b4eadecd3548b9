"""A book of alarms whose clock, models and levels a test moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.notifying.class_shift import ClassShift
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.records.events import Alarm, Confirmation, DelayKind

HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
RULE = AlarmRule(cooldown_ms=600_000, min_outcomes=100)
SPEC = AlarmsSpec(otherwise=RULE)


def alarm(
    model: str = "m",
    detector: str = "page_hinkley",
    ordinal: int = 1,
    outcome: int = 1_000,
    event_ms: int = NOW_MS,
    before: float = 0.1,
    after: float = 0.4,
) -> Alarm:
    return Alarm(model, detector, ordinal, outcome, event_ms, event_ms, 51.0, 50.0, before, after, 900.0)


@dataclass
class WatchedBook:
    """A book, with the facts about models that it asks for."""

    spec: AlarmsSpec = SPEC
    identity: str = "state-1"
    found: dict[str, Level] = field(default_factory=dict)
    firsts: dict[str, int] = field(default_factory=dict)
    shifts: dict[str, ClassShift] = field(default_factory=dict)
    segments: dict[str, SegmentChange] = field(default_factory=dict)
    asked: list[Sequence[str]] = field(default_factory=list)
    misled: set[str] = field(default_factory=set)
    judged: dict[str, int] = field(default_factory=dict)
    """Headlines by model."""
    ages: dict[str, int] = field(default_factory=dict)
    """By model whose alarms of a rise are confirmed by cohorts, the age of these."""
    confirmations: dict[str, Confirmation] = field(default_factory=dict)
    rises: list[tuple[str, int, float]] = field(default_factory=list)
    """What confirmations were asked for."""
    falsely: dict[str, float] = field(default_factory=dict)
    """By detector, false alarms expected in 30 days."""
    moved: dict[str, tuple[DelayKind, ...]] = field(default_factory=dict)
    """By model, kinds of labels whose delays have moved."""

    def __post_init__(self) -> None:
        self.book = AlarmBook(self.spec, self.identity)

    def hears(self, *alarms: Alarm, now_ms: int = NOW_MS, behind: bool = False) -> list[Notification]:
        return self.book.announce(alarms, now_ms, self, behind=behind)

    def reviews(self, now_ms: int = NOW_MS, *, behind: bool = False) -> list[Notification]:
        return self.book.review(self, now_ms, behind=behind)

    def counted(self, name: str) -> dict[tuple[str, ...], float]:
        return {k: float(v) for f in self.book.families() if f.name == name for k, v in f.samples}  # type: ignore[arg-type]

    def first_ms(self, model: str) -> int:
        return self.firsts.get(model, 7)

    def headlines(self, models: Sequence[str]) -> dict[str, int]:
        return {model: self.judged[model] for model in models if model in self.judged}

    def accuracy_misleads(self, model: str) -> bool:
        return model in self.misled

    def confirmation_expected_ms(self, model: str, at_ms: int) -> int | None:
        return at_ms + self.ages[model] if model in self.ages else None

    def confirmation(self, model: str, at_ms: int, rise: float) -> Confirmation | None:
        self.rises.append((model, at_ms, rise))
        return self.confirmations.get(model)

    def false_alarms_monthly(self, alarm: Alarm) -> float | None:
        return self.falsely.get(alarm.detector)

    def delays_moved(self, model: str) -> tuple[DelayKind, ...]:
        return self.moved.get(model, ())

    def class_shift(self, model: str, level: float) -> ClassShift | None:
        del level
        return self.shifts.get(model)

    def segment_change(self, model: str) -> SegmentChange | None:
        return self.segments.get(model)

    def levels(self, models: Sequence[str]) -> Mapping[str, Level]:
        self.asked.append(models)
        return {m: self.found[m] for m in models if m in self.found}
