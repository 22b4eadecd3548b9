"""`AlarmBook`: which alarms are announced as part of an incident, stay open, and end.

Times are of two kinds. `cooldown` is in event time: it is about alarms that follow each other in the stream.
A verdict that alternates is announced in spite of it, as no later alarm would tell of one that holds.
Age and `resolve_timeout` are in host time (`now_ms`): they are about people. In record time no alarm found in
a backlog would be old, and an alarm of a stream that stopped would never end. Cohorts of predictions end in
the clock of the merged sequence, so an alarm is confirmed as of the clock at which its outcome was resolved:
the time that a label states may be days from it.

An alarm of a verdict opens when the model becomes worse than the opponent, and ends only when it no longer
is: neither the level of the error nor time ends it. Other changes of the verdict while the alarm is open,
such as its confirmation, update the notification. One on a model with fewer than `min_outcomes` outcomes is
announced once it has as many, if it still holds then. An early verdict that is retracted ends the alarm with
the reason `retracted`. From the third change of side within a week on the verdict alternates: one
notification announces it, and further changes are counted. After a week without one the alarm ends, or, if
the model has been worse since, goes on as that of an ordinary verdict (`alternation`).

All decisions are in `state`, which is committed together with the notifications, so that a restart neither
repeats nor loses any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan
from typing import TypeVar

import msgspec

from streamwatch.core.alerting.alternation import WINDOW_MS, Alternation, Sides
from streamwatch.core.alerting.beside_incidents import (
    FleetDigest,
    KeptComparison,
    KeptFleet,
    KeptHint,
    ListWorse,
    OpenComparisons,
    OpenHints,
)
from streamwatch.core.alerting.incidents import Count, Incident, Incidents, is_back, level_before
from streamwatch.core.alerting.notification import (
    BacklogDigest,
    DigestState,
    IncidentAlarm,
    Notification,
    Reason,
    Severity,
)
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
from streamwatch.core.estimators.notifying.model_facts import ModelFacts
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family, Layered
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import Alarm, DelayKind, Judgement, Name

VERSION = 5
SUPPRESSED: tuple[str, ...] = ("already_open", "alternates", "cooldown", "min_outcomes")
"""Reasons why an alarm is counted and not announced."""


class _State(msgspec.Struct, frozen=True):
    incidents: list[msgspec.Raw]
    """Each an `Incident`."""
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
    held_back: list[tuple[Name, Name, Alarm]] = []


Kept = TypeVar("Kept")
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_State)
_INCIDENTS = msgspec.msgpack.Decoder(Incident)


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
        self._announced_at_ms: dict[str, dict[str, int]] = {}
        """Event time of the last alarm announced, by model and detector."""
        self._sides: dict[str, dict[str, Sides]] = {}
        """Recent changes of side of verdicts, by model and detector."""
        self._times: tuple[int, tuple[float, float]] = -1, (inf, inf)
        """Times of `_times_due`, behind the number of changes of incidents at which they were computed."""
        self._counted: tuple[int, list[Family]] = -1, []
        """Series of open alarms, likewise."""
        self._held_back: dict[str, dict[str, Alarm]] = {}
        """Verdicts that hold on models with fewer outcomes than an alarm needs, by model and detector."""
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
        self, alarms: Sequence[Alarm], now_ms: int, models: ModelFacts, *, behind: bool
    ) -> list[Notification]:
        """Process new alarms, in order, and return the notifications they lead to.

        Parameters
        ----------
        alarms
            As the detectors raised them.
        now_ms
            Host time.
        models
            Source of the facts stored with an alarm that begins.
        behind
            Whether the alarms were found in a backlog; only then old ones are gathered in the digest.
        """
        for alarm in alarms:
            key = alarm.model, alarm.detector
            opened = self._incidents.get(key)
            alternation = None
            if alarm.judgement is not None:
                worse = alarm.judgement.verdict < 0
                self._release(key)
                alternation = self._change_sides(alarm, alarm.judgement, is_open=opened is not None)
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
            if alarm.outcome < rule.min_outcomes:
                self._suppressed["min_outcomes"] += 1
                self._hold_back(alarm, is_open=opened is not None)
            elif opened is not None:
                self._suppressed["already_open"] += 1
                self._incidents.renew(alarm, now_ms)
            elif behind and now_ms - alarm.event_ms > self._spec.stale_after_ms:
                self._digest.add(alarm, self._severity(alarm, _misleads(alarm, models)), now_ms)
            elif self._cools_down(alarm, rule) and alternation is None:
                self._suppressed["cooldown"] += 1
            else:
                self._begin(alarm, models, now_ms, alternation)
        return self._incidents.issue(now_ms)

    def _begin(
        self, alarm: Alarm, models: ModelFacts, now_ms: int, alternation: Alternation | None = None
    ) -> None:
        is_judged, before = alarm.judgement is not None, self._level_before(alarm)
        misleads = _misleads(alarm, models)
        expected_ms = None
        if not is_judged and alarm.predicted_ms is None and alarm.after > before:
            expected_ms = models.confirmation_expected_ms(alarm.model, alarm.resolved_ms)
        part = IncidentAlarm(
            alarm,
            self._severity(alarm, misleads),
            alarm.judgement.since_ms if alarm.judgement else alarm.event_ms,
            alarm.resolved_ms,
            before,
            now_ms,
            accuracy_misleads=misleads,
            alternation=alternation,
            expected_ms=expected_ms,
            false_monthly=models.false_alarms_monthly(alarm),
            delays_moved=_delays_moved(alarm, models),
        )
        shift = models.class_shift(alarm.model, nan if is_judged else alarm.before)
        segment = None if is_judged else models.segment_change(alarm.model)
        self._incidents.begin(part, models.first_ms(alarm.model), shift, segment)
        self._announced_at_ms.setdefault(alarm.model, {})[alarm.detector] = alarm.event_ms

    def _hold_back(self, alarm: Alarm, *, is_open: bool) -> None:
        """Keep a verdict to announce later; detectors' alarms tell of a moment, and are not kept."""
        if alarm.judgement is not None and not is_open:
            self._held_back.setdefault(alarm.model, {})[alarm.detector] = alarm

    def _release(self, key: tuple[str, str]) -> None:
        model, detector = key
        if (of_model := self._held_back.get(model)) is not None:
            of_model.pop(detector, None)
            if not of_model:
                del self._held_back[model]

    def _begin_held_back(self, models: ModelFacts, now_ms: int) -> None:
        """Begin alarms of verdicts that still hold, of models that have enough outcomes by now."""
        names = sorted(self._held_back)
        levels, headlines = models.levels(names), models.headlines(names)
        for alarm in [alarm for name in names for alarm in self._held_back[name].values()]:
            key = alarm.model, alarm.detector
            level = levels.get(alarm.model)
            if headlines.get(alarm.model, -1) != -1:
                self._release(key)
            elif level is not None and level.outcomes >= self._spec.rule(*key).min_outcomes:
                self._release(key)
                self._begin(alarm, models, now_ms)

    def _cools_down(self, alarm: Alarm, rule: AlarmRule) -> bool:
        """Tell whether an alarm is within the cooldown of the one announced last of its detector."""
        last_ms = self._announced_at_ms.get(alarm.model, {}).get(alarm.detector)
        return last_ms is not None and abs(alarm.event_ms - last_ms) < rule.cooldown_ms

    def _change_sides(self, alarm: Alarm, judgement: Judgement, *, is_open: bool) -> Alternation | None:
        """Note the side of a new verdict; return the verdict's alternation, None without one."""
        of_model = self._sides.setdefault(alarm.model, {})
        sides = of_model.get(alarm.detector, Sides())
        if not is_open:  # no review has ended its alternation
            sides = sides.lapsed(alarm.event_ms)
        sides = sides.changed(alarm.event_ms, judgement.since_ms, worse=judgement.verdict < 0)
        of_model[alarm.detector] = sides
        return sides.alternation()

    def _severity(self, alarm: Alarm, misleads: bool) -> Severity:  # noqa: FBT001
        """Severity of an alarm that begins; of a verdict it depends on whether accuracy misleads."""
        rule = self._spec.rule(alarm.model, alarm.detector)
        return rule.severity_of(judged=alarm.judgement is not None, misleads=misleads)

    def review(
        self,
        models: ModelFacts,
        now_ms: int,
        *,
        behind: bool,
        hints: Mapping[str, ActiveHint] | None = None,
        comparisons: Sequence[ComparisonVerdict] | None = None,
        list_worse: ListWorse | None = None,
    ) -> list[Notification]:
        """Confirm or resolve open alarms, announce retraining, hints and comparisons, and close due digests.

        To be called once before each commit.

        Parameters
        ----------
        models
            Source of the present error levels of models.
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
        if self._held_back and not behind:
            self._begin_held_back(models, now_ms)
        open_alarms = self._incidents.parts()
        found = models.levels(list(dict.fromkeys(each.model for each in open_alarms))) if open_alarms else {}
        judged = [each.model for each in open_alarms if each.is_judged and each.part.alternation is None]
        headlines = models.headlines(judged) if judged else {}
        ended_before_ms = now_ms - self._spec.resolve_timeout_ms
        for each in open_alarms:
            model, part, is_judged, is_unconfirmed, counts_from_ms = each
            if is_judged:
                if part.alternation is not None and now_ms - part.touched_ms >= WINDOW_MS:
                    self._settle(each.key, now_ms)
                elif part.alternation is None and headlines.get(model, -1) != -1:
                    # No alarm reported this: changed settings made the model be judged otherwise, or anew.
                    self._incidents.end(each.key, "verdict_changed", now_ms)
                continue
            level = found.get(model)
            if is_unconfirmed and self._confirm(each.key, part, models, now_ms):
                continue
            if is_back(part, level):
                self._incidents.end(each.key, "back_to_level", now_ms)
            elif counts_from_ms <= ended_before_ms:
                self._incidents.end(each.key, "accepted_as_new_level", now_ms)
            else:
                continue
            if level is not None and level.errors is not None:
                self._drifts[model] = Count(level.outcomes, level.errors)
        notifications = self._incidents.issue(now_ms)
        retraining = not behind and now_ms >= self._times_due()[1]
        if retraining:
            due = [each.key for each in self._incidents.parts() if self._retrains(each.part, now_ms)]
            notifications += [self._incidents.retrain(key, now_ms) for key in due]
        if self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind):
            notifications.append(self._digest.close(self._identity, now_ms))
        notifications += self._hints.review(hints, now_ms, self._suppressed, behind=behind)
        notifications += self._comparisons.review(comparisons, now_ms, self._suppressed, behind=behind)
        return notifications + self._fleet.review(list_worse, now_ms, behind=behind)

    def _retrains(self, part: IncidentAlarm, now_ms: float) -> bool:
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

    def _times_due(self) -> tuple[float, float]:
        """Host times from which on time ends an open alarm, and from which on a retraining is announced.

        Infinity without such an alarm. They are computed once for each change of the incidents, as `due` asks
        for them again and again.
        """
        if self._times[0] != self._incidents.changes:
            ending = retraining = inf
            for _, part, is_judged, _, counts_from_ms in self._incidents.parts():
                if not is_judged:
                    ending = min(ending, counts_from_ms + self._spec.resolve_timeout_ms)
                    continue
                if part.alternation is not None:
                    ending = min(ending, part.touched_ms + WINDOW_MS)
                if self._retrains(part, inf):
                    retraining = min(retraining, part.started_at_ms + (self._spec.retraining_after_ms or 0))
            self._times = self._incidents.changes, (ending, retraining)
        return self._times[1]

    def _confirm(self, key: tuple[str, str], part: IncidentAlarm, models: ModelFacts, now_ms: int) -> bool:
        """Confirm or end an alarm if cohorts of predictions have decided on it; return whether it ended."""
        rise = part.alarm.after - part.before
        found = models.confirmation(key[0], part.resolved_ms, rise)
        if found is None:
            return False
        if found.is_confirmed:
            self._incidents.confirm(key, found, now_ms)
            return False
        self._incidents.end(key, "labels_changed", now_ms)
        self._contradicted += 1
        return True

    def _level_before(self, alarm: Alarm) -> float:
        """Mean loss before the change that an alarm reports; for a verdict, the previous verdict.

        If another detector's alarm on the model is open, it is the mean loss before that one.
        """
        if alarm.judgement is not None:
            return alarm.before
        for part in self._incidents.parts_of(alarm.model):
            if part.alarm.judgement is None:
                return part.before
        return level_before(alarm, self._drifts.get(alarm.model, Count(0, 0)))

    def _settle(self, key: tuple[str, str], now_ms: int) -> None:
        """End the alternation of a verdict that has stayed on one side for a week."""
        model, detector = key
        settled = self._sides[model][detector] = self._sides[model][detector].settled()
        if settled.is_worse:
            self._incidents.settle(key, now_ms)
        else:
            self._incidents.end(key, "verdict_changed", now_ms)

    def due(self, now_ms: int, *, behind: bool) -> bool:
        """Tell whether `review` has something to do because of the time, so that a commit is needed."""
        if self._digest.due(now_ms, self._spec.digest_interval_ms, behind=behind):
            return True
        if self._fleet.due(now_ms, behind=behind):
            return True
        ending_ms, retraining_ms = self._times_due()
        if now_ms >= ending_ms:
            return True
        return not behind and (now_ms >= retraining_ms or self._hints.waiting or self._comparisons.waiting)

    def retire(self, model: str, now_ms: int) -> list[Notification]:
        """Drop all state of a model, and resolve its open alarms and hints; return the notifications."""
        for part in self._incidents.parts_of(model):
            self._incidents.end((model, part.alarm.detector), "model_retired", now_ms)
        self._announced_at_ms.pop(model, None)
        self._sides.pop(model, None)
        self._held_back.pop(model, None)
        self._drifts.pop(model, None)
        return self._incidents.issue(now_ms) + self._hints.retire(model, now_ms)

    def tell(self, notification: Notification, receiver: str) -> None:
        """Note a receiver of a notification: it is also sent what follows of the incident."""
        if notification.parts and notification.kind != "retraining":
            self._incidents.tell(notification.incident, receiver)

    def open_incidents(self) -> list[Notification]:
        """Return the last notification of each open incident, with its alarms as they are now.

        The notifications of open hints and of open verdicts on challengers follow.
        """
        return [
            *self._incidents.open_notifications(),
            *self._hints.open().values(),
            *self._comparisons.open().values(),
        ]

    def state(self) -> bytes:
        """Encode the state; equal states give equal bytes."""
        return _ENCODER.encode(
            _State(
                incidents=self._incidents.state(),
                announced_at_ms=_flat(self._announced_at_ms),
                suppressed=self._suppressed,
                gathered=self._digest.gathered(),
                hints=self._hints.state(),
                hints_wait=self._hints.waiting,
                hints_silenced=self._hints.silenced,
                drifts=sorted(self._drifts.items()),
                sides=_flat(self._sides),
                contradicted=self._contradicted,
                comparisons=self._comparisons.state(),
                comparisons_wait=self._comparisons.waiting,
                comparisons_silenced=self._comparisons.silenced,
                fleet=self._fleet.state(),
                held_back=_flat(self._held_back),
            )
        )

    def restore(self, state: bytes) -> None:
        """Continue from a `state`; raises PackedError for other bytes."""
        with reading("the section 'alarms'"):
            read = _DECODER.decode(state)
            if read.version != VERSION:
                raise PackedError(f"expected an alarm book of version {VERSION}, got {read.version}")
            incidents = [_INCIDENTS.decode(each) for each in read.incidents]
        self._incidents.restore(incidents)
        self._announced_at_ms, self._sides = _nested(read.announced_at_ms), _nested(read.sides)
        self._held_back = _nested(read.held_back)
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
        """Open alarms by model, and numbers of alarms that were contradicted, suppressed or digested."""
        if self._counted[0] != self._incidents.changes:
            self._counted = self._incidents.changes, self._open_alarms()
        return [
            *self._counted[1],
            single("alarms_contradicted_total", float(self._contradicted)),
            family(
                "alarms_suppressed_total",
                [((reason,), float(n)) for reason, n in sorted(self._suppressed.items())],
            ),
            single("alarms_digested_total", float(self._digest.taken)),
        ]

    def _open_alarms(self) -> list[Family]:
        """Count open alarms, and those of them that cohorts have yet to confirm, by model."""
        counts: dict[tuple[str, str], int] = {}
        unconfirmed: dict[str, int] = {}
        for model, part, _, is_unconfirmed, _ in self._incidents.parts():
            key = model, part.severity
            counts[key] = counts.get(key, 0) + 1
            unconfirmed[model] = unconfirmed.get(model, 0) + is_unconfirmed
        return [
            family("alarms_open", [(key, float(n)) for key, n in sorted(counts.items())]),
            family("alarms_unconfirmed", [((model,), float(n)) for model, n in sorted(unconfirmed.items())]),
        ]


def _flat(by_model: Mapping[str, Mapping[str, Kept]]) -> list[tuple[Name, Name, Kept]]:
    """List what is kept by model and detector, sorted by both."""
    return [
        (model, detector, of_model[detector])
        for model, of_model in ((model, by_model[model]) for model in sorted(by_model))
        for detector in (of_model if len(of_model) == 1 else sorted(of_model))
    ]


def _nested(kept: Sequence[tuple[Name, Name, Kept]]) -> dict[str, dict[str, Kept]]:
    """Reverse `_flat`."""
    by_model: dict[str, dict[str, Kept]] = {}
    for model, detector, one in kept:
        by_model.setdefault(model, {})[detector] = one
    return by_model


def _reason_of(judgement: Judgement) -> Reason:
    """Reason for which a changed verdict ends its alarm."""
    return "retracted" if judgement.status == "retracted" else "verdict_changed"


def _delays_moved(alarm: Alarm, models: ModelFacts) -> tuple[DelayKind, ...]:
    """Find the kinds of labels whose delays have changed, which an early verdict assumes to be stable.

    Empty for alarms that are no early verdict.
    """
    if alarm.judgement is None or alarm.judgement.status != "early":
        return ()
    return models.delays_moved(alarm.model)


def _misleads(alarm: Alarm, models: ModelFacts) -> bool:
    """Tell whether an alarm is a verdict by accuracy although accuracy misleads."""
    return alarm.judgement is not None and models.accuracy_misleads(alarm.model)


# Open incidents of each model, in its details for the API.


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
    """Build the document of an open alarm.

    That of a detector has the errors before and after, where they are defined; that of a verdict has the
    opponent that the model is worse than, the basis of the verdict and its status.
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
