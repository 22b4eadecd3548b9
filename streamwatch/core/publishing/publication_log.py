"""Numbering of the outcomes and events of a state, and the publication of each commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS
from streamwatch.core.publishing.documents import SCHEMA_VERSION, EventDocument
from streamwatch.core.publishing.kept import (
    BEGINNING,
    Digests,
    KeptOutcomes,
    KeptRecord,
    RecordKeeper,
    RecordPosition,
    added,
    event_term,
    outcomes_sum,
)
from streamwatch.core.publishing.outcome_lines import IdTexts, keys_of
from streamwatch.core.publishing.publications import (
    Event,
    Ordinal,
    Publication,
    PublicationError,
)
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Alarm, Name, Outcome
from streamwatch.core.records.outcomes import OutcomeBatch

SECTION: Final = "publishing"
"""Section of a commit with the numbers reached, and the verdicts on comparisons last written."""
_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode


class _Numbers(msgspec.Struct, frozen=True, omit_defaults=True):
    life: Name
    outcomes: Ordinal = 0
    events: Ordinal = 0
    comparisons: list[tuple[Name, Name, int]] = []
    retired: Ordinal = 0
    digests: Digests = Digests()
    alarms: list[tuple[int, Alarm]] = []
    gone: list[tuple[int, Name]] = []
    invalid: RecordPosition = BEGINNING


_NUMBERS = msgspec.msgpack.Decoder(_Numbers)


class PublicationLog:
    """Numbers outcomes and events, and builds the publication of every commit.

    Parameters
    ----------
    identity, commits
        Identity of the state, and the number of its last commit. They name the sequence of numbers if the
        state has published nothing yet.
    outcomes, events
        Whether settings name a topic for outcomes, and one for events.
    ids_at_hand
        Whether `take` gets outcomes with the records that resolved them; false in the order of predictions.
    comparisons
        Function that returns the verdicts on all comparisons.
    section
        Section of the last commit, or None.
    deployment
        Name that replicas share; None for a single process. It names their sequence of numbers, and all
        outcomes and events are kept and numbered, with or without topics.

    Raises
    ------
    PublicationError
        If `section` is not of this version.
    """

    def __init__(
        self,
        identity: str,
        commits: int,
        *,
        outcomes: bool,
        events: bool,
        ids_at_hand: bool,
        comparisons: Callable[[], Sequence[ComparisonVerdict]],
        section: bytes | None = None,
        deployment: str | None = None,
    ) -> None:
        self._is_shared = deployment is not None
        self._with_outcomes = outcomes or self._is_shared
        self._with_ids = outcomes
        self._with_events = events or self._is_shared
        self._ids_at_hand = ids_at_hand
        self._comparisons = comparisons
        try:
            begun = _Numbers(f"{identity}.{commits}" if deployment is None else deployment)
            numbers = begun if section is None else _NUMBERS.decode(section)
        except (ValueError, RecursionError) as error:  # MsgspecError and UnicodeDecodeError are ValueErrors
            raise PublicationError(f"the section {SECTION!r} cannot be read: {error}") from error
        self.life = numbers.life
        """Name of the sequence of numbers; a state emptied on purpose begins another."""
        self._outcomes, self._events = numbers.outcomes, numbers.events
        self._verdicts = {(a, b): verdict for a, b, verdict in numbers.comparisons}
        self._retired, self._digests = numbers.retired, numbers.digests
        self._alarms, self._gone = list[tuple[int, Alarm]](), list[tuple[int, str]]()
        if self._is_shared:  # a process alone decides on its alarms as it commits them
            self._alarms, self._gone = list(numbers.alarms), list(numbers.gone)
        self._invalid = numbers.invalid
        self._keeper: RecordKeeper | None = None
        self._begin_commit()
        self._stretch: RecordBatch | None = None
        self._ids: IdTexts | None = None

    def _begin_commit(self) -> None:
        self._outcomes_before, self._events_before = self._outcomes, self._events
        self._digests_before = self._digests
        self._kept: list[KeptOutcomes] = []
        self._noted: list[Event] = []

    def keep_invalid(self, clock_ms: Callable[[], int]) -> RecordKeeper:
        """Return a keeper of invalid records, which go into publications from now on.

        `clock_ms` returns the clock of the evaluation at the last record evaluated.
        """
        self._keeper = RecordKeeper(self._invalid, clock_ms)
        return self._keeper

    @property
    def outcomes(self) -> int:
        """Number of the last outcome."""
        return self._outcomes

    @property
    def events(self) -> int:
        """Number of the last numbered event."""
        return self._events

    @property
    def retired(self) -> int:
        """Number of the last retirement of a model."""
        return self._retired

    @property
    def digests(self) -> Digests:
        """Digests up to the numbers `outcomes` and `events`."""
        return self._digests

    @property
    def verdicts(self) -> list[tuple[str, str, int]]:
        """Verdicts on comparisons last written, as (champion, challenger, verdict)."""
        return sorted((a, b, verdict) for (a, b), verdict in self._verdicts.items())

    def continue_from(self, verdicts: Sequence[tuple[str, str, int]]) -> None:
        """Replace the verdicts last written by those of another replica."""
        self._verdicts = {(a, b): verdict for a, b, verdict in verdicts}

    def undecided(self, event: int, retired: int) -> tuple[list[Alarm], list[str]]:
        """Return the alarms and retired models beyond these numbers, on which no holder has decided yet."""
        return (
            [alarm for number, alarm in self._alarms if number > event],
            [model for number, model in self._gone if number > retired],
        )

    def decided(self, event: int, retired: int) -> None:
        """Drop alarms and retired models up to these numbers, on which the ledger has decisions."""
        self._alarms = [each for each in self._alarms if each[0] > event]
        self._gone = [each for each in self._gone if each[0] > retired]

    def note(self, alarms: Sequence[Alarm], retired: Sequence[str] = ()) -> None:
        """Add alarms and changed verdicts to the next publication, in order, and then number retirements."""
        if not self._with_events:
            return
        for alarm in alarms:
            self._events += 1
            self._noted.append(event := _event(alarm_document(alarm, self.life, self._events)))
            if self._is_shared:
                self._alarms.append((self._events, alarm))
                events = added(self._digests.events, event_term(event.value))
                self._digests = Digests(self._digests.outcomes, events)
        if self._is_shared:
            for model in retired:
                self._retired += 1
                self._gone.append((self._retired, model))

    def take(self, outcomes: Sequence[Outcome], records: RecordBatch) -> None:
        """Add outcomes to the next publication, in the order of evaluation; `records` resolved them."""
        if not self._with_outcomes or not isinstance(outcomes, OutcomeBatch) or not len(outcomes):
            return
        if self._stretch is not records:
            self._stretch, self._ids = records, None
        ids = self._ids_of_stretch if self._ids_at_hand and self._with_ids else None
        kept = KeptOutcomes.of(outcomes, keys_of(outcomes, ids))
        self._kept.append(kept)
        if self._is_shared:
            found = added(self._digests.outcomes, outcomes_sum(kept, self._outcomes + 1))
            self._digests = Digests(found, self._digests.events)
        self._outcomes += len(outcomes)

    def _ids_of_stretch(self) -> IdTexts:
        if self._ids is None:
            assert self._stretch is not None  # noqa: S101 - `take` has set it
            self._ids = IdTexts(self._stretch)
        return self._ids

    def close(
        self, commit: int, notifications: Sequence[Notification], *, decides: bool = True
    ) -> Publication | None:
        """Build the publication of a commit from the outcomes and events since the last; None without any.

        Parameters
        ----------
        commit
            Its number.
        notifications
            Notifications decided at this commit.
        decides
            Whether this process decides on notifications and comparisons; false if another is the holder.
        """
        self._stretch = self._ids = None
        events = self._noted
        if self._with_events and decides:
            events += [_event(each) for each in self._changed_comparisons(commit)]
            events += [_event(notification_document(each, self.life)) for each in notifications]
        publication, invalid = None, list[KeptRecord]()
        if self._keeper is not None:
            invalid = self._keeper.take()
            self._invalid = self._keeper.reached
        if self._kept or events or invalid:
            publication = Publication(
                commit,
                self._outcomes_before,
                self._events_before,
                self._kept,
                events,
                self.life,
                self._digests_before if self._is_shared else None,
                self._digests if self._is_shared else None,
                invalid=invalid,
                reached=self._reached,
            )
        self._begin_commit()
        return publication

    def nothing(self, commit: int) -> Publication:
        """Build an empty publication, to add decisions to if `close` returned None."""
        return Publication(
            commit,
            self._outcomes,
            self._events,
            [],
            [],
            self.life,
            self._digests,
            self._digests,
            reached=self._reached,
        )

    @property
    def _reached(self) -> RecordPosition | None:
        return None if self._keeper is None else self._invalid

    def section(self) -> bytes:
        """Encode the numbers reached, after `close`."""
        return _pack(
            _Numbers(
                self.life,
                self._outcomes,
                self._events,
                self.verdicts,
                self._retired,
                self._digests,
                self._alarms,
                self._gone,
                self._invalid,
            )
        )

    def _changed_comparisons(self, commit: int) -> list[EventDocument]:
        found = {(each.champion, each.challenger): each for each in self._comparisons()}
        changed = [each for pair, each in found.items() if each.verdict != self._verdicts.get(pair, 0)]
        self._verdicts = {pair: each.verdict for pair, each in found.items() if each.verdict}
        mark = self._outcomes if self._is_shared else commit  # commits of replicas have other numbers
        return [comparison_document(each, self.life, mark) for each in changed]


def _event(document: EventDocument) -> Event:
    return Event(document.model or document.id, _json(document), document.number)


def alarm_document(alarm: Alarm, life: str, number: int) -> EventDocument:
    """Convert an alarm of a detector, or a changed verdict on a model."""
    judgement = alarm.judgement
    document = EventDocument(
        SCHEMA_VERSION,
        life,
        f"{'alarm' if judgement is None else 'verdict'}/{alarm.model}/{alarm.detector}/{number}",
        number,
        "alarm" if judgement is None else "verdict",
        alarm.model,
        alarm.event_ms,
        detector=alarm.detector,
        ordinal=alarm.ordinal,
        outcome=alarm.outcome,
    )
    if judgement is None:
        return msgspec.structs.replace(
            document,
            statistic=alarm.statistic,
            threshold=alarm.threshold,
            error_before=alarm.before,
            error_after=alarm.after,
        )
    return msgspec.structs.replace(
        document,
        verdict=VERDICT_WORDS[judgement.verdict],
        opponent=judgement.opponent,
        basis=judgement.basis,
        status=judgement.status or None,
        since_timestamp_ms=judgement.since_ms if judgement.verdict else None,
        earliest_timestamp_ms=judgement.earliest_ms,
        latest_timestamp_ms=judgement.latest_ms,
    )


def comparison_document(verdict: ComparisonVerdict, life: str, mark: int) -> EventDocument:
    """Convert a changed verdict on a challenger; `mark` makes the id of the change unique."""
    return EventDocument(
        SCHEMA_VERSION,
        life,
        f"comparison/{verdict.champion}/{verdict.challenger}/{mark}",
        None,
        "comparison",
        verdict.challenger,
        verdict.last_ms,
        verdict=VERDICT_WORDS[verdict.verdict],
        opponent=verdict.champion,
        basis=verdict.basis,
        status=verdict.status or None,
        since_timestamp_ms=verdict.since_ms,
    )


def notification_document(notification: Notification, life: str) -> EventDocument:
    """Convert a notification."""
    return EventDocument(
        SCHEMA_VERSION,
        life,
        notification.id,
        None,
        "notification",
        notification.model,
        notification.issued_ms,
        kind=notification.kind,
        severity=notification.severity,
        incident=notification.incident,
        detectors=notification.detectors,
        started_timestamp_ms=notification.started_at_ms,
        ended_timestamp_ms=notification.ended_at_ms,
    )
