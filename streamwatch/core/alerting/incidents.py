"""Incidents: alarms of several detectors, and the verdict, on one change of one model.

The position of an alarm is its outcome; that of a change of verdict is the outcome since which the verdict
holds, where its evidence begins. An incident spans the positions of its alarms. An alarm belongs to the open
incident of its model whose span is nearest, if it lies within `reach` outcomes of the span; else it begins a
new incident. Distance is counted in outcomes, not in time, because detectors wait for outcomes. A detector
that alarms again while its alarm is open stays in its incident, and widens the span.

An incident leads to a sequence of notifications: firing, updated whenever an alarm of the incident begins,
ends or is confirmed, and resolved when none is open any more. All changes of one batch of alarms or one
review go into one notification, except that the beginning of an alarm is notified before its end.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from streamwatch.core.alerting.alternation import Alternation
from streamwatch.core.alerting.notification import (
    IncidentAlarm,
    Notification,
    Reason,
    identify,
    worst,
)
from streamwatch.core.estimators.notifying.class_shift import ClassShift
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.records.events import Alarm, Confirmation, DelayKind, Name

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")

Key = tuple[str, str]
"""Model and detector."""


class Incident(msgspec.Struct, frozen=True):
    """Incident with an open alarm."""

    id: Name
    first: int
    """Least position of its alarms: number of an outcome of the model."""
    last: int
    """Greatest position of its alarms."""
    parts: tuple[IncidentAlarm, ...] = ()
    """Newest alarm of each detector, in the order in which they began."""
    shift: ClassShift | None = None
    """Whether the classes or the model seemed to have changed when an alarm last began; None if unknown."""
    sent: int = 0
    """Number of notifications so far."""
    newest: Notification | None = None
    """Latest notification."""
    segment: SegmentChange | None = None
    """Segment value with most of the extra errors when an alarm last began that had one; None without any."""
    told: tuple[Name, ...] | None = None
    """Receivers that were sent a notification of it, as in `Notification.told`; None if that was not kept."""

    @property
    def model(self) -> str:
        """Name of the model that the incident is about."""
        return self.parts[0].alarm.model

    @property
    def is_open(self) -> bool:
        """Tell whether an alarm of the incident is open."""
        return any(part.is_open for part in self.parts)

    def distance(self, position: int) -> int:
        """Return the number of outcomes between a position and the incident's span; 0 inside it."""
        return max(0, position - self.last, self.first - position)

    def begun(self, part: IncidentAlarm, position: int) -> Incident:
        """Return the incident with `part` added, an alarm that begins at `position`."""
        others = tuple(each for each in self.parts if each.alarm.detector != part.alarm.detector)
        return self._spanning(position, (*others, part))

    def changed(self, part: IncidentAlarm, position: int) -> Incident:
        """Return the incident with `part` in place of its detector's alarm, spanning `position` as well."""
        parts = (part if each.alarm.detector == part.alarm.detector else each for each in self.parts)
        return self._spanning(position, tuple(parts))

    def _spanning(self, position: int, parts: tuple[IncidentAlarm, ...]) -> Incident:
        return msgspec.structs.replace(
            self, parts=parts, first=min(self.first, position), last=max(self.last, position)
        )


class OpenAlarm(NamedTuple):
    """Open alarm, with what reviews ask of each."""

    model: str
    part: IncidentAlarm
    is_judged: bool
    """Whether it is of the verdict."""
    is_unconfirmed: bool
    """See `IncidentAlarm.is_unconfirmed`."""
    counts_from_ms: int
    """Host time from which the time counts after which the alarm ends: its newest alarm, or confirmation.

    It is later by the wait for a confirmation that may still come.
    """

    @property
    def key(self) -> Key:
        """Model and detector."""
        return self.model, self.part.alarm.detector


def _open_alarm(model: str, part: IncidentAlarm) -> OpenAlarm:
    is_judged, is_unconfirmed, waits_ms = part.alarm.judgement is not None, part.is_unconfirmed, 0
    if is_unconfirmed and part.expected_ms is not None:
        waits_ms = max(part.expected_ms - part.resolved_ms, 0)
    return OpenAlarm(model, part, is_judged, is_unconfirmed, part.touched_ms + waits_ms)


@dataclass(slots=True)
class _News:
    """Changes of an incident that are to be notified."""

    detectors: list[str] = field(default_factory=list[str])
    ends: bool = False
    """Whether alarms of these detectors ended; otherwise they began or changed."""


class Incidents:
    """All open incidents, and their changes that are not notified yet.

    Parameters
    ----------
    identity
        Unique name of the state, so that notification ids of two states differ.
    reach
        Outcomes from the span of an incident within which an alarm belongs to it, at least 0.
    """

    def __init__(self, identity: str, reach: int) -> None:
        self._identity = identity
        self._reach = reach
        self._incidents: dict[str, Incident] = {}
        self._of_models: dict[str, dict[str, None]] = {}
        """Ids of the incidents of each model that has any."""
        self._of: dict[str, dict[str, str]] = {}
        """Incident of each open alarm, by model and detector."""
        self._models: list[str] = []
        """Models that have incidents, sorted."""
        self._changed: set[str] = set()
        """Models of the incidents that have changed since `_refresh`."""
        self._alarms_of: dict[str, list[OpenAlarm]] = {}
        """Open alarms of each model, sorted by detector, as of the last `_refresh`."""
        self._shown_of: dict[str, list[Notification]] = {}
        """Last notifications of the open incidents of each model, as of the last `_refresh`."""
        self._sorted: tuple[int, list[OpenAlarm]] = -1, []
        """Open alarms in canonical order, behind the number of changes at which they were listed."""
        self.changes = 0
        """Number of changes of incidents so far, by which a reader sees whether there were any."""
        self._news: dict[str, _News] = {}
        """Changes by incident, in the order in which they came."""
        self._issued: list[Notification] = []
        self._encoded: dict[str, msgspec.Raw] = {}
        """Incidents as `state` encoded them, those that have not changed since."""
        self._open_ones: tuple[int, list[Notification]] = -1, []
        """What `open_notifications` made, behind the number of changes at which it did."""

    def begin(
        self, part: IncidentAlarm, first_ms: int, shift: ClassShift | None, segment: SegmentChange | None
    ) -> None:
        """Open an alarm of a model and detector that have no open one.

        Parameters
        ----------
        part
            The alarm, with the host time in `touched_ms`.
        first_ms
            Event time of the model's first outcome, which distinguishes models of one name.
        shift
            Whether the classes or the model seem to have changed; None if unknown.
        segment
            Segment value with most of the extra errors; None without one.
        """
        alarm, position = part.alarm, position_of(part.alarm)
        found = self._nearest(alarm.model, position)
        if found is None:
            # A detector whose parameters changed counts ordinals anew: outcome and time distinguish alarms.
            marks = (alarm.model, first_ms, alarm.detector, alarm.ordinal, alarm.outcome, alarm.event_ms)
            found = Incident(identify("incident", self._identity, *marks), position, position, told=())
        self._note(found.id, alarm.detector, ends=False, now_ms=part.touched_ms)
        found = self._incidents.get(found.id, found)
        self._of.setdefault(alarm.model, {})[alarm.detector] = found.id
        self._put(
            msgspec.structs.replace(
                found.begun(part, position), shift=shift, segment=segment or found.segment
            )
        )

    def renew(self, alarm: Alarm, now_ms: int) -> None:
        """Add a further alarm of a detector whose alarm is open, and restart its `resolve_timeout`."""
        incident, part = self._open(alarm.model, alarm.detector)
        part = msgspec.structs.replace(part, alarm=alarm, touched_ms=now_ms, alarms=part.alarms + 1)
        self._put(incident.changed(part, position_of(alarm)))

    def restate(self, alarm: Alarm, now_ms: int, delays_moved: tuple[DelayKind, ...] = ()) -> None:
        """Replace an open verdict whose basis, status or opponent has changed, but not its side.

        The change is notified, unless the verdict alternates.
        """
        incident, part = self._open(alarm.model, alarm.detector)
        if part.alternation is None:
            self._note(incident.id, alarm.detector, ends=False, now_ms=now_ms)
        part = msgspec.structs.replace(part, alarm=alarm, delays_moved=delays_moved)
        self._put(self._incidents[incident.id].changed(part, incident.first))

    def confirm(self, key: Key, found: Confirmation, now_ms: int) -> None:
        """Add the confirmation by cohorts of predictions to an open alarm, and notify it."""
        incident, part = self._open(*key)
        self._note(incident.id, key[1], ends=False, now_ms=now_ms)
        part = msgspec.structs.replace(part, confirmation=found, touched_ms=now_ms)
        self._put(self._incidents[incident.id].changed(part, incident.first))

    def alternate(self, alarm: Alarm, alternation: Alternation, now_ms: int) -> None:
        """Add a change of side to an open verdict that alternates; only the first such change is notified."""
        incident, part = self._open(alarm.model, alarm.detector)
        if part.alternation is None:
            self._note(incident.id, alarm.detector, ends=False, now_ms=now_ms)
            incident = self._incidents[incident.id]
        part = msgspec.structs.replace(
            part, alarm=alarm, touched_ms=now_ms, alarms=part.alarms + 1, alternation=alternation
        )
        self._put(incident.changed(part, position_of(alarm)))

    def settle(self, key: Key, now_ms: int) -> None:
        """End the alternation of an open verdict that is worse, and notify it.

        It counts as worse since the last change of side: before it was better now and then.
        """
        incident, part = self._open(*key)
        self._note(incident.id, key[1], ends=False, now_ms=now_ms)
        judgement = part.alarm.judgement
        assert judgement is not None, "of a verdict"  # noqa: S101
        part = msgspec.structs.replace(
            part, alternation=None, started_at_ms=judgement.since_ms, retraining_ms=None
        )
        self._put(self._incidents[incident.id].changed(part, incident.first))

    def retrain(self, key: Key, now_ms: int) -> Notification:
        """Announce that the model of an open verdict should be retrained; at most once for each verdict."""
        incident, part = self._open(*key)
        part = msgspec.structs.replace(part, retraining_ms=now_ms)
        self._put(incident.changed(part, incident.first))
        return Notification(
            id=identify("retraining", incident.id, part.started_at_ms),
            kind="retraining",
            severity=part.severity,
            issued_ms=now_ms,
            incident=incident.id,
            parts=(part,),
            news=(key[1],),
        )

    def end(self, key: Key, reason: Reason, now_ms: int, alarm: Alarm | None = None) -> None:
        """End an open alarm; `alarm` is the change of verdict that ends it, if one does."""
        incident, part = self._open(*key)
        self._note(incident.id, key[1], ends=True, now_ms=now_ms)
        ended_ms = max(now_ms, part.started_at_ms)
        part = msgspec.structs.replace(
            part, alarm=alarm or part.alarm, ended_at_ms=ended_ms, reason=reason, alternation=None
        )
        del self._of[key[0]][key[1]]
        self._put(self._incidents[incident.id].changed(part, incident.first))

    def issue(self, now_ms: int) -> list[Notification]:
        """Issue the notifications of all changes since the last call."""
        for name in list(self._news):
            self._issue(name, now_ms)
        issued, self._issued = self._issued, []
        return issued

    def tell(self, name: str, receiver: str) -> None:
        """Note a receiver that is sent a notification of an incident; nothing of one that is over."""
        incident = self._incidents.get(name)
        if incident is not None and incident.told is not None and receiver not in incident.told:
            self._put(msgspec.structs.replace(incident, told=(*incident.told, receiver)))

    def parts(self) -> Sequence[OpenAlarm]:
        """Return all open alarms in canonical order: by model, then by detector."""
        if self._sorted[0] != self.changes:
            self._refresh()
            alarms = [each for model in self._models for each in self._alarms_of[model]]
            self._sorted = self.changes, alarms
        return self._sorted[1]

    def parts_of(self, model: str) -> list[IncidentAlarm]:
        """Return the open alarms of a model, sorted by detector."""
        return [self._open(model, detector)[1] for detector in sorted(self._of.get(model, ()))]

    def get(self, key: Key) -> IncidentAlarm | None:
        """Return the open alarm of a model and detector; None without one."""
        return self._open(*key)[1] if key[1] in self._of.get(key[0], ()) else None

    def open_notifications(self) -> list[Notification]:
        """Return the last notification of each open incident, with its alarms as they are now, by model."""
        if self._open_ones[0] != self.changes:
            self._refresh()
            shown = [each for model in self._models for each in self._shown_of[model]]
            self._open_ones = self.changes, shown
        return self._open_ones[1]

    def _refresh(self) -> None:
        """List again what is open of the models whose incidents have changed.

        With thousands of open incidents, few change between two commits.
        """
        for model in self._changed:
            self._alarms_of.pop(model, None)
            self._shown_of.pop(model, None)
            if model not in self._of_models:
                continue
            self._alarms_of[model] = [_open_alarm(model, part) for part in self.parts_of(model)]
            incidents = (self._incidents[name] for name in sorted(self._of_models[model]))
            self._shown_of[model] = [
                incident.newest
                if incident.newest.parts is incident.parts
                else msgspec.structs.replace(incident.newest, parts=incident.parts)
                for incident in incidents
                if incident.newest is not None
            ]
        self._changed.clear()

    def state(self) -> list[msgspec.Raw]:
        """Encode what `restore` continues from, in canonical order; to be called right after `issue`.

        Each incident is encoded once for each change of it: with thousands that are open, few change between
        two commits.
        """
        encoded = self._encoded
        for name in self._incidents.keys() - encoded.keys():
            encoded[name] = msgspec.Raw(_ENCODER.encode(self._incidents[name]))
        return [encoded[name] for name in sorted(encoded)]

    def restore(self, incidents: Sequence[Incident]) -> None:
        """Continue from a `state`."""
        self._incidents, self._of_models, self._of, self._encoded = {}, {}, {}, {}
        self._alarms_of, self._shown_of, self._models = {}, {}, []
        self._changed, self._news, self._issued = set(), {}, []
        for incident in incidents:
            self._put(incident)
            for part in incident.parts:
                if part.is_open:
                    self._of.setdefault(incident.model, {})[part.alarm.detector] = incident.id

    def _put(self, incident: Incident) -> None:
        """Store an incident, whether new or changed."""
        self._incidents[incident.id] = incident
        self._encoded.pop(incident.id, None)
        model = incident.model
        if model not in self._of_models:
            self._of_models[model] = {}
            insort(self._models, model)
        self._of_models[model][incident.id] = None
        self._changed.add(model)
        self.changes += 1

    def _remove(self, incident: Incident) -> None:
        """Remove an incident, none of whose alarms is open."""
        del self._incidents[incident.id]
        self._encoded.pop(incident.id, None)
        model = incident.model
        of_model = self._of_models[model]
        del of_model[incident.id]
        if not of_model:
            del self._of_models[model]
            del self._models[bisect_left(self._models, model)]
            self._of.pop(model, None)
        self._changed.add(model)
        self.changes += 1

    def _open(self, model: str, detector: str) -> tuple[Incident, IncidentAlarm]:
        incident = self._incidents[self._of[model][detector]]
        return incident, next(part for part in incident.parts if part.alarm.detector == detector)

    def _nearest(self, model: str, position: int) -> Incident | None:
        near = (
            (incident.distance(position), -incident.last, incident.id)
            for incident in (self._incidents[name] for name in self._of_models.get(model, ()))
            if incident.is_open
        )
        distance, _, name = min(near, default=(self._reach + 1, 0, ""))
        return self._incidents[name] if distance <= self._reach else None

    def _note(self, name: str, detector: str, *, ends: bool, now_ms: int) -> None:
        """Queue a change to notify; changes of the other kind that are queued are issued first."""
        if (news := self._news.get(name)) is not None and news.ends is not ends:
            self._issue(name, now_ms)
        news = self._news.setdefault(name, _News(ends=ends))
        if detector not in news.detectors:
            news.detectors.append(detector)

    def _issue(self, name: str, now_ms: int) -> None:
        incident, news = self._incidents[name], self._news.pop(name)
        kind = "firing" if incident.sent == 0 else "updated" if incident.is_open else "resolved"
        newest = Notification(
            id=identify(kind, name, incident.sent),
            kind=kind,
            severity=worst(part.severity for part in incident.parts),
            issued_ms=now_ms,
            incident=name,
            parts=incident.parts,
            news=tuple(news.detectors),
            shift=incident.shift,
            segment=incident.segment,
            told=incident.told,
        )
        self._issued.append(newest)
        if incident.is_open:
            self._put(msgspec.structs.replace(incident, sent=incident.sent + 1, newest=newest))
        else:
            self._remove(incident)


def position_of(alarm: Alarm) -> int:
    """Return the position of an alarm: its outcome, or the one since which the verdict holds."""
    return alarm.judgement.since if alarm.judgement else alarm.outcome


# Test for the end of a drift, and the level of the error before it.


LEAST_OUTCOMES: Final = 1_000
"""Least number of outcomes between two drifts from which the level before the second is computed."""


class Count(NamedTuple):
    """Outcomes of a model, and errors among them, up to some moment."""

    outcomes: int
    errors: int


def level_before(alarm: Alarm, earlier: Count) -> float:
    """Estimate the mean loss before the drift that a detector's alarm begins.

    It is the mean loss since the previous drift. The detector's own mean before the change (`Alarm.before`)
    is for some detectors the lowest mean that they have seen, to which even a model that is as good as before
    need not come back. It is used only if there are fewer than `LEAST_OUTCOMES` outcomes since the previous
    drift, or no count of errors.

    Parameters
    ----------
    alarm
        First alarm of the drift.
    earlier
        Count at the end of the model's previous drift; zeros if there was none.
    """
    outcomes = alarm.outcome - earlier.outcomes
    if alarm.errors is None or outcomes < LEAST_OUTCOMES:
        return alarm.before
    return (alarm.errors - earlier.errors) / outcomes


def is_back(part: IncidentAlarm, level: Level | None) -> bool:
    """Tell whether the recent error is within its bound of the level before the alarm.

    False without a level, and until the model has had `level.n_eff` outcomes since the alarm: before, the
    faded error still reflects the time before the alarm, so that every alarm would end at once.
    """
    alarm = part.alarm
    if level is None or level.outcomes - alarm.outcome < level.n_eff:
        return False
    if alarm.after < part.before:
        return level.error + level.bound >= part.before
    return level.error - level.bound <= part.before
