"""`AlarmBook`: which alarms are announced as part of an incident, stay open, and end.

Times are of two kinds. `cooldown` is in event time: it is about alarms that follow each other in the stream.
Age and `resolve_timeout` are in host time (`now_ms`): they are about people. In record time no alarm found in
a backlog would be old, and an alarm of a stream that stopped would never end.

An alarm of a verdict opens when the model becomes worse than the opponent, and ends only when it no longer
is: neither the level of the error nor time ends it.

All decisions are in `state`, which is committed together with the notifications, so that a restart neither
repeats nor loses any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Protocol

import msgspec

from streamwatch.core.alerting.digest import BacklogDigest, DigestState
from streamwatch.core.alerting.hints import KeptHint, OpenHints
from streamwatch.core.alerting.incidents import Incident, Incidents
from streamwatch.core.alerting.notification import Notification, Severity
from streamwatch.core.alerting.resolution import is_back
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators.notifying.class_shift import ClassShift
from streamwatch.core.estimators.notifying.level import Level
from streamwatch.core.estimators.registers.segments.change import SegmentChange
from streamwatch.core.events import Alarm
from streamwatch.core.metrics import family, single
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.series import Family

VERSION = 2
SUPPRESSED: tuple[str, ...] = ("already_open", "cooldown", "min_outcomes")
"""Reasons why an alarm is counted and not announced."""


class _State(msgspec.Struct, frozen=True):
    incidents: list[Incident]
    announced_at_ms: list[tuple[str, str, int]]
    suppressed: dict[str, int]
    gathered: DigestState
    version: int = VERSION
    hints: list[KeptHint] = []
    hints_wait: bool = False
    hints_silenced: int = 0


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_State)


class WatchedModels(Protocol):
    """Source of facts about models that the book needs; `EstimatorSet.facts` implements it."""

    def first_ms(self, model: str) -> int:
        """Event time of a model's first outcome."""
        ...

    def levels(self, models: Sequence[str]) -> Mapping[str, Level]:
        """Return the present error levels of models by name; models without a level are left out."""
        ...

    def accuracy_misleads(self, model: str) -> bool:
        """Tell whether a model is judged by accuracy that says little of its use."""
        ...

    def class_shift(self, model: str, level: float) -> ClassShift | None:
        """Tell whether the classes or the model seem to have changed, given the mean loss before."""
        ...

    def segment_change(self, model: str) -> SegmentChange | None:
        """Find the value of a segment in which most of a changed error sits."""
        ...


class AlarmBook:
    """Decides which alarms become notifications, and when alarms end.

    Parameters
    ----------
    spec
        Rules and durations.
    identity
        Unique name of the state (`Store.identity`), so that notification ids of two states differ.
    """

    def __init__(self, spec: AlarmsSpec, identity: str) -> None:
        self._spec = spec
        self._identity = identity
        self._incidents = Incidents(identity, spec.incident_outcomes)
        self._announced_at_ms: dict[tuple[str, str], int] = {}
        """Event time of the last alarm announced."""
        self._suppressed: dict[str, int] = dict.fromkeys(SUPPRESSED, 0)
        self._digest = BacklogDigest(spec.digest_size)
        self._hints = OpenHints(spec, identity)

    def announce(
        self, alarms: Sequence[Alarm], now_ms: int, models: WatchedModels, *, behind: bool
    ) -> list[Notification]:
        """Process new alarms, in order, and return the notifications they lead to.

        Parameters
        ----------
        alarms
            As the detectors raised them.
        now_ms
            Host time.
        models
            Tells when a model was first seen, which tells it from an earlier one of its name, and whether a
            change looks like one of its classes.
        behind
            Whether the alarms were found in a backlog; only then old ones are gathered in the digest.
        """
        for alarm in alarms:
            key = alarm.model, alarm.detector
            is_open = self._incidents.get(key) is not None
            if alarm.judgement is not None and alarm.judgement.verdict >= 0:
                if is_open:
                    self._incidents.end(key, "verdict_changed", now_ms, alarm)
                continue
            rule = self._spec.rule(*key)
            last_ms = self._announced_at_ms.get(key)
            if alarm.outcome < rule.min_outcomes:
                self._suppressed["min_outcomes"] += 1
            elif is_open:
                self._suppressed["already_open"] += 1
                self._incidents.renew(alarm, now_ms)
            elif behind and now_ms - alarm.event_ms > self._spec.stale_after_ms:
                self._digest.add(alarm, self._severity(alarm, _misleads(alarm, models)), now_ms)
            elif last_ms is not None and abs(alarm.event_ms - last_ms) < rule.cooldown_ms:
                self._suppressed["cooldown"] += 1
            else:
                shift = models.class_shift(alarm.model, nan if alarm.judgement else alarm.before)
                misleads = _misleads(alarm, models)
                severity = self._severity(alarm, misleads)
                segment = None if alarm.judgement else models.segment_change(alarm.model)
                first_ms = models.first_ms(alarm.model)
                self._incidents.begin(alarm, severity, first_ms, shift, segment, now_ms, misleads=misleads)
                self._announced_at_ms[key] = alarm.event_ms
        return self._incidents.tell(now_ms)

    def _severity(self, alarm: Alarm, misleads: bool) -> Severity:  # noqa: FBT001
        """Severity of an alarm that begins; of a verdict it depends on what accuracy says of the model."""
        rule = self._spec.rule(alarm.model, alarm.detector)
        return rule.severity_of(judged=alarm.judgement is not None, misleads=misleads)

    def review(
        self,
        models: WatchedModels,
        now_ms: int,
        *,
        behind: bool,
        hints: Mapping[str, ActiveHint] | None = None,
    ) -> list[Notification]:
        """Resolve alarms that have ended, and close the digest if it is due; once before each commit.

        Parameters
        ----------
        models
            Tells the present error levels of models.
        now_ms
            Host time.
        behind
            Whether a backlog is still being read: the digest waits for its end, for a bounded time.
        hints
            Early hints that are active, by model; None if hints are not reported, which ends open ones.
        """
        open_alarms = list(self._incidents.parts())
        found = models.levels(sorted({model for (model, _), _ in open_alarms})) if open_alarms else {}
        for key, part in open_alarms:
            if part.alarm.judgement is not None:
                continue
            if is_back(part, found.get(key[0])):
                self._incidents.end(key, "back_to_level", now_ms)
            elif now_ms - part.touched_ms >= self._spec.resolve_timeout_ms:
                self._incidents.end(key, "accepted_as_new_level", now_ms)
        notifications = self._incidents.tell(now_ms)
        if self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind):
            notifications.append(self._digest.leave(self._identity, now_ms))
        return notifications + self._hints.review(hints, now_ms, self._suppressed, behind=behind)

    def due(self, now_ms: int, *, behind: bool) -> bool:
        """Tell whether `review` has something to do because of the time, so that a commit is needed."""
        ttl = self._spec.resolve_timeout_ms
        if self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind):
            return True
        old = (part for _, part in self._incidents.parts() if now_ms - part.touched_ms >= ttl)
        return (self._hints.waiting and not behind) or any(part.alarm.judgement is None for part in old)

    def retire(self, model: str, now_ms: int) -> list[Notification]:
        """Drop all state of a model, and resolve its open alarms."""
        for key, _ in list(self._incidents.parts()):
            if key[0] == model:
                self._incidents.end(key, "model_retired", now_ms)
        for key in [key for key in self._announced_at_ms if key[0] == model]:
            del self._announced_at_ms[key]
        return self._incidents.tell(now_ms) + self._hints.retire(model, now_ms)

    def open_incidents(self) -> list[Notification]:
        """The last notification of each open incident, with its alarms as they are now, and of open hints."""
        return [*self._incidents.open_notifications(), *self._hints.open().values()]

    def state(self) -> bytes:
        """Encode the state; equal states give equal bytes."""
        return _ENCODER.encode(
            _State(
                incidents=self._incidents.state(),
                announced_at_ms=[(*key, event_ms) for key, event_ms in sorted(self._announced_at_ms.items())],
                suppressed=self._suppressed,
                gathered=self._digest.gathered(),
                hints=self._hints.state(),
                hints_wait=self._hints.waiting,
                hints_silenced=self._hints.silenced,
            )
        )

    def restore(self, state: bytes) -> None:
        """Continue from a `state`; raises ValueError for one of another version."""
        read = _DECODER.decode(state)
        if read.version != VERSION:
            raise ValueError(f"alarm book must be of version {VERSION}, got {read.version}")
        self._incidents.restore(read.incidents)
        self._announced_at_ms = {(model, detector): ms for model, detector, ms in read.announced_at_ms}
        self._suppressed = {**dict.fromkeys(SUPPRESSED, 0), **read.suppressed}
        self._digest.restore(read.gathered)
        self._hints.restore(read.hints, waiting=read.hints_wait, silenced=read.hints_silenced)

    def families(self) -> list[Family]:
        """Open alarms by model, and what was not announced."""
        counts: dict[tuple[str, str], int] = {}
        for (model, _), part in self._incidents.parts():
            key = model, part.severity
            counts[key] = counts.get(key, 0) + 1
        return [
            family("alarms_open", [(key, float(n)) for key, n in sorted(counts.items())]),
            family(
                "alarms_suppressed_total",
                [((reason,), float(n)) for reason, n in sorted(self._suppressed.items())],
            ),
            single("alarms_digested_total", float(self._digest.taken)),
        ]


def _misleads(alarm: Alarm, models: WatchedModels) -> bool:
    """Tell whether an alarm is a verdict by accuracy that says little of the model's use."""
    return alarm.judgement is not None and models.accuracy_misleads(alarm.model)
