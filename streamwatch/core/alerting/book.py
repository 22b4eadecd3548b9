"""`AlarmBook`: which alarms are announced as part of an incident, stay open, and end.

Times are of two kinds. `cooldown` is in event time: it is about alarms that follow each other in the stream.
Age and `resolve_timeout` are in host time (`now_ms`): they are about people. In record time no alarm found in
a backlog would be old, and an alarm of a stream that stopped would never end.

An alarm of a verdict opens when the model becomes worse than the opponent, and ends only when it no longer
is: neither the level of the error nor time ends it. What else changes of it while it is open, as when an
early claim is confirmed, updates its notification. A claim that is retracted ends it as such. From the third
change of side within a week on the verdict alternates: one notification announces it, further changes are
counted, and the alarm ends when the model has not been worse for a week (`alternation`).

All decisions are in `state`, which is committed together with the notifications, so that a restart neither
repeats nor loses any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Protocol

import msgspec

from streamwatch.core.alerting.alternation import WINDOW_MS, Sides
from streamwatch.core.alerting.comparisons import JudgedPair, KeptComparison, OpenComparisons
from streamwatch.core.alerting.fleet_digest import FleetDigest, KeptFleet, ListWorse
from streamwatch.core.alerting.hints import KeptHint, OpenHints
from streamwatch.core.alerting.incidents import Beginning, Count, Incident, Incidents, is_back, level_before
from streamwatch.core.alerting.notification import (
    BacklogDigest,
    DigestState,
    IncidentAlarm,
    Notification,
    Reason,
    Severity,
)
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators.notifying.class_shift import ClassShift
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.estimators.registers.segments.estimates import SegmentChange
from streamwatch.core.events import Alarm, Confirmation, DelayKind, Judgement, Name
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.layered import Layered
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.kind import ActiveHint

VERSION = 4
SUPPRESSED: tuple[str, ...] = ("already_open", "alternates", "cooldown", "min_outcomes")
"""Reasons why an alarm is counted and not announced."""


class _State(msgspec.Struct, frozen=True):
    incidents: list[Incident]
    announced_at_ms: list[tuple[Name, Name, int]]
    suppressed: dict[Name, int]
    gathered: DigestState
    version: int = VERSION
    hints: list[KeptHint] = []
    hints_wait: bool = False
    hints_silenced: int = 0
    sides: list[tuple[Name, Name, Sides]] = []
    drifts: list[tuple[Name, Count]] = []
    contradicted: int = 0
    comparisons: list[KeptComparison] = []
    comparisons_wait: bool = False
    comparisons_silenced: int = 0
    fleet: KeptFleet = KeptFleet()


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
        """Tell whether a model is judged by accuracy although accuracy misleads."""
        ...

    def class_shift(self, model: str, level: float) -> ClassShift | None:
        """Find whether the classes or the model seem to have changed, given the mean loss before."""
        ...

    def segment_change(self, model: str) -> SegmentChange | None:
        """Find the value of a segment in which most of a changed error sits."""
        ...

    def headline(self, model: str) -> int | None:
        """Return the headline of a model now: 1 better, −1 worse, 0 open; None if it is not judged."""
        ...

    def confirmation_expected_ms(self, model: str, at_ms: int) -> int | None:
        """Return the event time from which on an alarm of a rise may be confirmed; None if none is."""
        ...

    def confirmation(self, model: str, at_ms: int, rise: float) -> Confirmation | None:
        """Judge an alarm at an event time that found a `rise` of the error; None while undecided."""
        ...

    def false_alarms_monthly(self, alarm: Alarm) -> float | None:
        """Estimate the false alarms that its detector raises in 30 days at its model; None where unknown."""
        ...

    def delays_moved(self, model: str) -> tuple[DelayKind, ...]:
        """Find the kinds of labels of a model whose settled delays differ between neighbouring months."""
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
        self._sides: dict[tuple[str, str], Sides] = {}
        """Recent changes of side of verdicts."""
        self._drifts: dict[str, Count] = {}
        """Outcomes and errors of each model at the end of its last drift."""
        self._suppressed: dict[str, int] = dict.fromkeys(SUPPRESSED, 0)
        self._contradicted = 0
        """Alarms that cohorts of predictions did not confirm."""
        self._digest = BacklogDigest(spec.digest_size)
        self._hints = OpenHints(spec, identity)
        self._comparisons = OpenComparisons(spec, identity)
        self._fleet = FleetDigest(spec.fleet_digest, identity)

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
            Gives when a model was first seen, which distinguishes it from an earlier one of its name, and
            whether a change looks like one of its classes.
        behind
            Whether the alarms were found in a backlog; only then old ones are gathered in the digest.
        """
        for alarm in alarms:
            key = alarm.model, alarm.detector
            opened = self._incidents.get(key)
            alternation = None
            if alarm.judgement is not None:
                worse = alarm.judgement.verdict < 0
                sides = self._sides.get(key, Sides())
                sides = sides.changed(alarm.event_ms, alarm.judgement.since_ms, worse=worse)
                self._sides[key], alternation = sides, sides.alternation()
                if opened is not None and alarm.before == alarm.after:
                    self._incidents.restate(alarm, now_ms, _delays_moved(alarm, models))
                    continue
                if opened is not None and alternation is not None:
                    self._suppressed["alternates"] += opened.alternation is not None
                    self._incidents.alternate(alarm, alternation, now_ms)
                    continue
                if not worse:
                    if opened is not None:
                        self._incidents.end(key, _reason_of(alarm.judgement), now_ms, alarm)
                    continue
            rule = self._spec.rule(*key)
            last_ms = self._announced_at_ms.get(key)
            if alarm.outcome < rule.min_outcomes:
                self._suppressed["min_outcomes"] += 1
            elif opened is not None:
                self._suppressed["already_open"] += 1
                self._incidents.renew(alarm, now_ms)
            elif behind and now_ms - alarm.event_ms > self._spec.stale_after_ms:
                self._digest.add(alarm, self._severity(alarm, _misleads(alarm, models)), now_ms)
            elif last_ms is not None and abs(alarm.event_ms - last_ms) < rule.cooldown_ms:
                self._suppressed["cooldown"] += 1
            else:
                self._incidents.begin(alarm, self._beginning(alarm, models), now_ms)
                if alternation is not None:
                    self._incidents.mark_alternating(key, alternation)
                self._announced_at_ms[key] = alarm.event_ms
        return self._incidents.issue(now_ms)

    def _severity(self, alarm: Alarm, misleads: bool) -> Severity:  # noqa: FBT001
        """Severity of an alarm that begins; of a verdict it depends on whether accuracy misleads."""
        rule = self._spec.rule(alarm.model, alarm.detector)
        return rule.severity_of(judged=alarm.judgement is not None, misleads=misleads)

    def review(
        self,
        models: WatchedModels,
        now_ms: int,
        *,
        behind: bool,
        hints: Mapping[str, ActiveHint] | None = None,
        comparisons: Sequence[JudgedPair] | None = None,
        list_worse: ListWorse | None = None,
    ) -> list[Notification]:
        """Resolve alarms that have ended, and close digests that are due; once before each commit.

        Parameters
        ----------
        models
            Gives the present error levels of models.
        now_ms
            Host time.
        behind
            Whether a backlog is still being read: the digest waits for its end, for a bounded time.
        hints
            Early hints that are active, by model; None if hints are not reported, which ends open ones.
        comparisons
            Verdicts on all challengers; None if they are not reported, which ends open ones.
        list_worse
            Lists the models that are worse; needed where digests of them are wanted.
        """
        open_alarms = list(self._incidents.parts())
        found = models.levels(sorted({model for (model, _), _ in open_alarms})) if open_alarms else {}
        for key, part in open_alarms:
            if part.alarm.judgement is not None:
                if part.alternation is not None and now_ms - part.touched_ms >= WINDOW_MS:
                    self._settle(key, now_ms)
                elif part.alternation is None and models.headline(key[0]) not in (None, -1):
                    # No change of verdict did so: a setting was changed, and it is judged otherwise or anew.
                    self._incidents.end(key, "verdict_changed", now_ms)
                continue
            level = found.get(key[0])
            if part.is_unconfirmed and self._confirm(key, part, models, now_ms):
                continue
            if is_back(part, level):
                self._incidents.end(key, "back_to_level", now_ms)
            elif now_ms - part.touched_ms >= self._timeout_ms(part):
                self._incidents.end(key, "accepted_as_new_level", now_ms)
            else:
                continue
            if level is not None and level.errors is not None:
                self._drifts[key[0]] = Count(level.outcomes, level.errors)
        notifications = self._incidents.issue(now_ms)
        due = [] if behind else [key for key, part in self._incidents.parts() if self._retrains(part, now_ms)]
        notifications += [self._incidents.retrain(key, now_ms) for key in due]
        if self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind):
            notifications.append(self._digest.leave(self._identity, now_ms))
        notifications += self._hints.review(hints, now_ms, self._suppressed, behind=behind)
        notifications += self._comparisons.review(comparisons, now_ms, self._suppressed, behind=behind)
        return notifications + self._fleet.review(list_worse, now_ms, behind=behind)

    def _retrains(self, part: IncidentAlarm, now_ms: int) -> bool:
        """Tell whether a model has been worse for so long that its retraining is to be announced."""
        after_ms = self._spec.retraining_after_ms
        return (
            after_ms is not None
            and part.alarm.judgement is not None
            and part.alternation is None
            and part.retraining_ms is None
            and not part.accuracy_misleads
            and now_ms - part.started_at_ms >= after_ms
        )

    def _timeout_ms(self, part: IncidentAlarm) -> int:
        """Host time after which an open alarm counts as the new level: longer until it may be confirmed."""
        waits_ms = 0
        if part.is_unconfirmed and part.expected_ms is not None:
            waits_ms = max(part.expected_ms - part.started_at_ms, 0)
        return self._spec.resolve_timeout_ms + waits_ms

    def _confirm(self, key: tuple[str, str], part: IncidentAlarm, models: WatchedModels, now_ms: int) -> bool:
        """Confirm or end an alarm that cohorts have decided on by now; return whether it ended."""
        rise = part.alarm.after - part.before
        found = models.confirmation(key[0], part.started_at_ms, rise)
        if found is None:
            return False
        if found.is_confirmed:
            self._incidents.confirm(key, found, now_ms)
            return False
        self._incidents.end(key, "labels_changed", now_ms)
        self._contradicted += 1
        return True

    def _beginning(self, alarm: Alarm, models: WatchedModels) -> Beginning:
        misleads = _misleads(alarm, models)
        before = self._level_before(alarm)
        return Beginning(
            self._severity(alarm, misleads),
            models.first_ms(alarm.model),
            before,
            models.class_shift(alarm.model, nan if alarm.judgement else alarm.before),
            None if alarm.judgement else models.segment_change(alarm.model),
            misleads,
            models.confirmation_expected_ms(alarm.model, alarm.event_ms)
            if alarm.judgement is None and alarm.predicted_ms is None and alarm.after > before
            else None,
            models.false_alarms_monthly(alarm),
            _delays_moved(alarm, models),
        )

    def _level_before(self, alarm: Alarm) -> float:
        """Mean loss before the change that an alarm begins.

        A detector that joins others has theirs; a verdict, the verdict before.
        """
        if alarm.judgement is not None:
            return alarm.before
        for (model, _), part in self._incidents.parts():
            if model == alarm.model and part.alarm.judgement is None:
                return part.before
        return level_before(alarm, self._drifts.get(alarm.model, Count(0, 0)))

    def _settle(self, key: tuple[str, str], now_ms: int) -> None:
        """End the alternation of a verdict of which one side has held for a week."""
        self._sides[key] = self._sides[key].settled()
        if self._sides[key].is_worse:
            self._incidents.settle(key, now_ms)
        else:
            self._incidents.end(key, "verdict_changed", now_ms)

    def due(self, now_ms: int, *, behind: bool) -> bool:
        """Tell whether `review` has something to do because of the time, so that a commit is needed."""
        if self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind):
            return True
        if self._fleet.due(now_ms, behind=behind):
            return True
        ending = any(
            now_ms - part.touched_ms
            >= (self._timeout_ms(part) if part.alarm.judgement is None else WINDOW_MS)
            for _, part in self._incidents.parts()
            if part.alarm.judgement is None or part.alternation is not None
        )
        retraining = any(self._retrains(part, now_ms) for _, part in self._incidents.parts())
        return ending or (not behind and (retraining or self._hints.waiting or self._comparisons.waiting))

    def retire(self, model: str, now_ms: int) -> list[Notification]:
        """Drop all state of a model, and resolve its open alarms."""
        for key, _ in list(self._incidents.parts()):
            if key[0] == model:
                self._incidents.end(key, "model_retired", now_ms)
        for kept in (self._announced_at_ms, self._sides):
            for key in [key for key in kept if key[0] == model]:
                del kept[key]
        self._drifts.pop(model, None)
        return self._incidents.issue(now_ms) + self._hints.retire(model, now_ms)

    def open_incidents(self) -> list[Notification]:
        """The last notification of each open incident, with its alarms as they are now.

        Those of open hints and of verdicts on challengers follow.
        """
        return [
            *self._incidents.open_notifications(),
            *self._hints.open().values(),
            *self._comparisons.open_notifications(),
        ]

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
                drifts=sorted(self._drifts.items()),
                sides=[(*key, sides) for key, sides in sorted(self._sides.items())],
                contradicted=self._contradicted,
                comparisons=self._comparisons.state(),
                comparisons_wait=self._comparisons.waiting,
                comparisons_silenced=self._comparisons.silenced,
                fleet=self._fleet.state(),
            )
        )

    def restore(self, state: bytes) -> None:
        """Continue from a `state`; raises PackedError for other bytes."""
        with reading("the section 'alarms'"):
            read = _DECODER.decode(state)
            if read.version != VERSION:
                raise PackedError(f"expected an alarm book of version {VERSION}, got {read.version}")
        self._incidents.restore(read.incidents)
        self._announced_at_ms = {(model, detector): ms for model, detector, ms in read.announced_at_ms}
        self._sides = {(model, detector): sides for model, detector, sides in read.sides}
        self._drifts = dict(read.drifts)
        self._contradicted = read.contradicted
        self._suppressed = {**dict.fromkeys(SUPPRESSED, 0), **read.suppressed}
        self._digest.restore(read.gathered)
        self._hints.restore(read.hints, waiting=read.hints_wait, silenced=read.hints_silenced)
        self._comparisons.restore(
            read.comparisons, waiting=read.comparisons_wait, silenced=read.comparisons_silenced
        )
        self._fleet.restore(read.fleet)

    def families(self) -> list[Family]:
        """Open alarms by model, and counts of those not announced."""
        counts: dict[tuple[str, str], int] = {}
        unconfirmed: dict[str, int] = {}
        for (model, _), part in self._incidents.parts():
            key = model, part.severity
            counts[key] = counts.get(key, 0) + 1
            unconfirmed[model] = unconfirmed.get(model, 0) + part.is_unconfirmed
        return [
            family("alarms_open", [(key, float(n)) for key, n in sorted(counts.items())]),
            family("alarms_unconfirmed", [((model,), float(n)) for model, n in sorted(unconfirmed.items())]),
            single("alarms_contradicted_total", float(self._contradicted)),
            family(
                "alarms_suppressed_total",
                [((reason,), float(n)) for reason, n in sorted(self._suppressed.items())],
            ),
            single("alarms_digested_total", float(self._digest.taken)),
        ]


def _reason_of(judgement: Judgement) -> Reason:
    """Reason for the end of the alarm that a change of verdict ends."""
    return "retracted" if judgement.status == "retracted" else "verdict_changed"


def _delays_moved(alarm: Alarm, models: WatchedModels) -> tuple[DelayKind, ...]:
    """Find the kinds of labels whose delays have moved; an early verdict assumes that they stay the same."""
    if alarm.judgement is None or alarm.judgement.status != "early":
        return ()
    return models.delays_moved(alarm.model)


def _misleads(alarm: Alarm, models: WatchedModels) -> bool:
    """Tell whether an alarm is a verdict by accuracy although accuracy misleads."""
    return alarm.judgement is not None and models.accuracy_misleads(alarm.model)


# Open incidents of each model, as the API shows them beside numbers.


def details_with_incidents(
    details: Mapping[str, Mapping[str, object]], incidents: Sequence[Notification]
) -> Mapping[str, Mapping[str, object]]:
    """Add the open incidents of models to their other details, the oldest first.

    Parameters
    ----------
    details
        Details by model.
    incidents
        The last notification of each open incident.
    """
    of_alarms = [each for each in incidents if each.parts]  # hints and comparisons have pages of their own
    if not of_alarms:
        return details
    by_model: dict[str, list[Notification]] = {}
    for incident in sorted(of_alarms, key=lambda each: (each.model, each.started_at_ms, each.incident)):
        by_model.setdefault(incident.model, []).append(incident)

    def change(model: str, shown: Mapping[str, object]) -> Mapping[str, object]:
        if model not in by_model:
            return shown
        return {**shown, "open_incidents": [_document(incident) for incident in by_model[model]]}

    return Layered(details, by_model, change)


def _document(incident: Notification) -> dict[str, object]:
    return {
        "incident": incident.incident,
        "severity": incident.severity,
        "started_timestamp_seconds": incident.started_at_ms / 1000,
        "alarms": [_alarm(part) for part in incident.parts if part.is_open],
    }


def _alarm(part: IncidentAlarm) -> dict[str, object]:
    """One open alarm: of a detector with the errors before and after, where they are defined.

    Of a verdict, with the opponent that the model is worse than, what the verdict is from, and its status.
    """
    shown: dict[str, object] = {
        "detector": part.alarm.detector,
        "severity": part.severity,
        "started_timestamp_seconds": part.started_at_ms / 1000,
    }
    if (judgement := part.alarm.judgement) is not None:
        return shown | {"opponent": judgement.opponent, "basis": judgement.basis, "status": judgement.status}
    errors = {"before": part.before, "after": part.alarm.after}
    shown |= {name: value for name, value in errors.items() if isfinite(value)}
    if part.false_monthly is not None:
        shown["false_alarms_expected_monthly"] = part.false_monthly
    if part.is_unconfirmed and part.expected_ms is not None:
        return shown | {"status": "unconfirmed", "confirmation_expected_seconds": part.expected_ms / 1000}
    if (found := part.confirmation) is None:
        return shown
    return shown | {
        "status": "confirmed",
        "predictions": {
            "since_timestamp_seconds": found.since_ms / 1000,
            "before": found.before,
            "after": found.after,
        },
    }
