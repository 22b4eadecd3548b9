"""Notifications: messages that an incident, a hint or a verdict on a challenger began, changed or ended.

A notification may also be a digest: of alarms found in a backlog (`digest`), of notifications beyond a
receiver's limit (`gathered`), or of the models that are worse (`fleet`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from streamwatch.core.alerting.alternation import Alternation
from streamwatch.core.estimators.notifying.class_shift import ClassShift
from streamwatch.core.estimators.registers.fleet import WorsePair
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import Alarm, Confirmation, DelayKind, Name
from streamwatch.core.specs import UtilityKind

Kind: TypeAlias = Literal["firing", "updated", "resolved", "digest", "retraining"]
Severity: TypeAlias = Literal["info", "warning", "error", "critical"]
Reason: TypeAlias = Literal[
    "back_to_level",
    "accepted_as_new_level",
    "verdict_changed",
    "retracted",
    "labels_changed",
    "model_retired",
]
HintReason: TypeAlias = Literal["no_longer_active", "model_retired"]
ComparisonReason: TypeAlias = Literal["verdict_changed", "retracted", "no_longer_compared"]
ComparisonStatus: TypeAlias = Literal["early", "confirmed", ""]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error", "critical")
"""Severities, from the least to the most severe."""


def worst(severities: Iterable[Severity]) -> Severity:
    """Return the most severe of at least one severity."""
    return SEVERITIES[max(SEVERITIES.index(each) for each in severities)]


class AlarmCount(msgspec.Struct, frozen=True):
    """Number of alarms of one model and detector in a digest."""

    model: Name
    detector: Name
    alarms: int


class Digest(msgspec.Struct, frozen=True):
    """Alarms of a backlog that are too old to be notified one by one."""

    alarms: int
    """Number of alarms."""
    series: int
    """Number of pairs of model and detector with alarms."""
    first_at_ms: int
    last_at_ms: int
    tallies: tuple[AlarmCount, ...]
    """Pairs with most alarms, most first; at most as many as a digest lists."""
    earliest: tuple[Alarm, ...]
    """First alarms found, in full; at most as many as a digest lists."""


class IncidentAlarm(msgspec.Struct, frozen=True):
    """Alarm of one detector, or of the verdict, in an incident."""

    alarm: Alarm
    """Newest alarm, or the change of verdict that ended it."""
    severity: Severity
    started_at_ms: int
    """Event time of the first alarm; of a verdict, the time since which it holds."""
    resolved_ms: int
    """Clock of the merged sequence at the outcome of the first alarm, or of the change of the verdict."""
    before: float
    """Mean loss before the first alarm; of a verdict, the previous verdict."""
    touched_ms: int
    """Host time of the newest alarm, or of its confirmation."""
    alarms: int = 1
    """Number of alarms of the detector, the first one included."""
    ended_at_ms: int | None = None
    """Host time of its end; None while it is open."""
    reason: Reason | None = None
    """Reason for its end; None while it is open."""
    retraining_ms: int | None = None
    """Host time at which retraining was announced, as the model had been worse for long; None before."""
    accuracy_misleads: bool = False
    """Whether it is a verdict by accuracy although accuracy misled, as classes of the model are rare."""
    alternation: Alternation | None = None
    """Pattern in which the verdict alternates between worse and not worse; None if it does not."""
    expected_ms: int | None = None
    """Clock of the merged sequence from which cohorts may confirm an alarm at a rise of the error.

    None if it needs no confirmation, or cannot get one.
    """
    confirmation: Confirmation | None = None
    """Confirmation of the alarm by cohorts of predictions; None without one."""
    false_monthly: float | None = None
    """False alarms that the detector is expected to raise in 30 days at this model; None if unknown."""
    delays_moved: tuple[DelayKind, ...] = ()
    """Kinds of labels whose settled delays had changed when an early verdict was notified."""

    @property
    def is_open(self) -> bool:
        """Tell whether the alarm has not ended."""
        return self.reason is None

    @property
    def is_unconfirmed(self) -> bool:
        """Tell whether the alarm is open and waits for its confirmation by cohorts of predictions."""
        return self.is_open and self.expected_ms is not None and self.confirmation is None


class NotifiedHint(msgspec.Struct, frozen=True):
    """An early hint that people are notified of: no alarm, and no verdict."""

    model: Name
    as_notified: ActiveHint
    """The hint as it was when it was notified first."""
    ended_at_ms: int | None = None
    """Host time of its end; None while it is open."""
    reason: HintReason | None = None
    """Reason for its end; None while it is open."""


class NotifiedComparison(msgspec.Struct, frozen=True):
    """A verdict on a challenger that people are notified of: no alarm."""

    champion: Name
    challenger: Name
    verdict: int
    """1: the challenger is better than the champion; −1: worse."""
    since_ms: int
    """Event time since which the verdict holds; of one by cohorts, prediction time."""
    as_of_ms: int
    """Event time of the latest pair of outcomes when it was notified, or confirmed."""
    basis: Literal["cohorts", "labels"]
    """Basis of the verdict: cohorts of prediction time, or outcomes in the order of labels."""
    status: ComparisonStatus
    """`confirmed` if all labels of its predictions are in, else `early`; empty unless it is by cohorts."""
    ended_at_ms: int | None = None
    """Host time of its end; None while it is open."""
    reason: ComparisonReason | None = None
    """Reason for its end; None while it is open."""
    utility: UtilityKind = "accuracy"
    """Utility by which the champion is judged."""


class RivalPair(msgspec.Struct, frozen=True, order=True):
    """A model and an opponent that it is compared with."""

    model: Name
    opponent: Name


class NotifiedFleet(msgspec.Struct, frozen=True):
    """List of the models that are worse by the fleet's rule (`registers.fleet`), made at regular times."""

    at_ms: int
    """Host time that the list is made for, a multiple of the interval between lists."""
    before_ms: int | None
    """Time of the previous list; None for the first."""
    share: float
    """Largest expected share of pairs listed falsely, in this list taken alone."""
    pairs: int
    """Number of pairs of a model and an opponent that are judged, listed or not."""
    models: int
    """Number of models on the list."""
    number: int
    """Number of pairs on the list."""
    listed: tuple[WorsePair, ...]
    """Pairs on the list, the largest e-value first; only as many as a digest names, as `added` and `left`."""
    number_added: int
    added: tuple[RivalPair, ...]
    """Pairs that are in this list and not in the previous one."""
    number_left: int
    left: tuple[RivalPair, ...]
    """Pairs that are in the previous list and not in this one."""


class Gathered(msgspec.Struct, frozen=True):
    """Notifications beyond the limit of a receiver, sent as one digest."""

    notifications: int
    """Number of notifications."""
    models: int
    """Number of models that they are about."""
    firing: int
    """Number of them of kind `firing`; `resolved` likewise."""
    resolved: int
    listed: tuple[Notification, ...]
    """Newest notification of each incident, the most severe first; at most as many as a digest lists."""


class Notification(msgspec.Struct, frozen=True):
    """Message to every receiver that wants it.

    `id` stays the same over retries and restarts, so that receivers can recognise repetitions.
    """

    id: Name
    kind: Kind
    severity: Severity
    """Worst severity among its parts."""
    issued_ms: int
    """Host time at which it was decided; the time after which its delivery is given up counts from here."""
    incident: Name
    """Id of the incident, the same in all its notifications; of a digest, its own `id`."""
    parts: tuple[IncidentAlarm, ...] = ()
    """Alarms of the incident, open or ended, in the order in which they began; none in a digest or a hint."""
    news: tuple[Name, ...] = ()
    """Detectors whose part began, ended or changed since the previous notification of the incident."""
    shift: ClassShift | None = None
    """Whether the classes or the model seemed to have changed when an alarm last began; None if unknown."""
    digest: Digest | None = None
    test: bool = False
    """Whether it was sent by hand to test the receiver."""
    segment: SegmentChange | None = None
    """Segment value with most of the extra errors; None without one."""
    hint: NotifiedHint | None = None
    """Early hint that it is about (it has no parts then); None if it is about something else."""
    comparison: NotifiedComparison | None = None
    """Verdict on a challenger that it is about (no parts then); None if it is about something else."""
    gathered: Gathered | None = None
    """Notifications that it is a digest of; None if it is no such digest."""
    fleet: NotifiedFleet | None = None
    """List of the models that are worse that it is a digest of; None if it is no such digest."""
    labels: Mapping[Name, Name] = {}
    """Labels that settings give to the model."""
    runbook_url: Name | None = None
    """Page with instructions for alarms of the model; None if settings name none."""
    number: int = 0
    """Ordinal in the order of decision, in which receivers are sent notifications of a model; 0 before."""
    told: tuple[Name, ...] | None = None
    """Receivers that were sent an earlier one of its incident, and so this one, whatever settings say.

    Those that keep it open are not among them if it was only a line of a digest. None if unknown.
    """

    @property
    def model(self) -> str:
        """Name of the model that it is about, of a comparison the challenger; empty for a digest."""
        if self.hint is not None:
            return self.hint.model
        if self.comparison is not None:
            return self.comparison.challenger
        return self.parts[0].alarm.model if self.parts else ""

    @property
    def detectors(self) -> tuple[str, ...]:
        """Detectors of its parts."""
        return tuple(part.alarm.detector for part in self.parts)

    @property
    def series(self) -> str:
        """Key whose notifications are delivered to a receiver in order: the model."""
        return self.model

    @property
    def severities(self) -> frozenset[Severity]:
        """Severities of its parts; a receiver gets the notification if it wants any of them.

        So a receiver that was notified of a part is also notified of its end.
        """
        if self.gathered is not None:
            return frozenset(one for each in self.gathered.listed for one in each.severities)
        return frozenset(part.severity for part in self.parts) or frozenset((self.severity,))

    @property
    def started_at_ms(self) -> int:
        """Event time at which the earliest part, the hint, the verdict or the digest's first alarm began.

        Of a hint it is record time; of a list of worse models, the time that it is made for.
        """
        if self.fleet is not None:
            return self.fleet.at_ms
        if self.hint is not None:
            return self.hint.as_notified.given_ms
        if self.comparison is not None:
            return self.comparison.since_ms
        if self.digest is not None:
            return self.digest.first_at_ms
        if self.gathered is not None:
            return min(each.started_at_ms for each in self.gathered.listed)
        return min(part.started_at_ms for part in self.parts)

    @property
    def ended_at_ms(self) -> int | None:
        """Host time at which its last part, hint or verdict ended, or a digest closed; None while open."""
        if self.hint is not None:
            return self.hint.ended_at_ms
        if self.comparison is not None:
            return self.comparison.ended_at_ms
        if self.digest is not None or self.gathered is not None or self.fleet is not None:
            return self.issued_ms
        ended = [part.ended_at_ms for part in self.parts if part.ended_at_ms is not None]
        return max(ended) if len(ended) == len(self.parts) else None


def identify(kind: Kind | Literal["incident"], *parts: object) -> str:
    """Build a 128-bit id from the kind and the parts that distinguish a notification or incident."""
    written = msgspec.json.encode([kind, *map(str, parts)])
    return f"{kind}_{hashlib.sha256(written).hexdigest()[:32]}"


# Alarms found in a backlog, gathered into one notification instead of hundreds.


class DigestState(msgspec.Struct):
    """State of a digest: alarms gathered, and the number of digests issued before."""

    counts: list[AlarmCount] = []
    earliest: list[Alarm] = []
    severity: Severity = "info"
    first_at_ms: int = 0
    last_at_ms: int = 0
    since_ms: int = 0
    taken: int = 0
    sent: int = 0


class BacklogDigest:
    """Counts old alarms by model and detector, and keeps the first `size` of them.

    The digest is due once the backlog has been read, or `interval_ms` after its first alarm.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: dict[tuple[str, str], int] = {}
        self._kept = DigestState()

    @property
    def taken(self) -> int:
        """Number of alarms ever gathered."""
        return self._kept.taken

    def add(self, alarm: Alarm, severity: Severity, now_ms: int) -> None:
        """Add one alarm to the digest."""
        kept = self._kept
        if not self._counts:
            kept.since_ms, kept.severity = now_ms, severity
            kept.first_at_ms = kept.last_at_ms = alarm.event_ms
        key = alarm.model, alarm.detector
        self._counts[key] = self._counts.get(key, 0) + 1
        kept.severity = worst((kept.severity, severity))
        kept.first_at_ms = min(kept.first_at_ms, alarm.event_ms)
        kept.last_at_ms = max(kept.last_at_ms, alarm.event_ms)
        if len(kept.earliest) < self._size:
            kept.earliest.append(alarm)
        kept.taken += 1

    def due(self, now_ms: int, interval_ms: int, *, behind: bool) -> bool:
        """Tell whether the digest is due."""
        return bool(self._counts) and (not behind or now_ms - self._kept.since_ms >= interval_ms)

    def close(self, identity: str, now_ms: int) -> Notification:
        """Return the digest as a notification, and begin an empty one."""
        kept = self._kept
        most = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[: self._size]
        digest = Digest(
            alarms=sum(self._counts.values()),
            series=len(self._counts),
            first_at_ms=kept.first_at_ms,
            last_at_ms=kept.last_at_ms,
            tallies=tuple(AlarmCount(model, detector, n) for (model, detector), n in most),
            earliest=tuple(kept.earliest),
        )
        name = identify("digest", identity, kept.sent)
        self._counts, kept.earliest = {}, []
        kept.sent += 1
        return Notification(
            id=name,
            kind="digest",
            severity=kept.severity,
            issued_ms=now_ms,
            incident=name,
            digest=digest,
        )

    def gathered(self) -> DigestState:
        """State that `restore` continues from; equal digests give equal states."""
        counts = [AlarmCount(model, detector, n) for (model, detector), n in sorted(self._counts.items())]
        return msgspec.structs.replace(self._kept, counts=counts)

    def restore(self, state: DigestState) -> None:
        """Continue from a `gathered` state."""
        self._counts = {(tally.model, tally.detector): tally.alarms for tally in state.counts}
        self._kept = state
