"""Publications: the outcomes and events of one commit, kept in the state until they are in their topics.

A commit has its publication in the same atomic batch as the state, so that each outcome and event is decided
once. The publication is written to the topics after the commit, in one transaction with the `Ledger`, which
records the last numbers written. A later commit removes the publications that the ledger includes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.publishing.candidacy import Decisions
from streamwatch.core.publishing.documents import SCHEMA_VERSION
from streamwatch.core.publishing.kept import (
    BEGINNING,
    Digests,
    KeptOutcomes,
    KeptRecord,
    RecordPosition,
    added,
    event_term,
    outcomes_sum,
)
from streamwatch.core.publishing.outcome_lines import OutcomeLines, Written
from streamwatch.core.records.events import Name

_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
Ordinal: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""Number of an outcome or event in its sequence, from 1; 0 for none."""


class PublicationError(ValueError):
    """Publication, section or record of the ledger that cannot be decoded."""


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One record of the events topic."""

    key: Name
    """Model, or the id of the event if it is about none."""
    value: bytes
    number: int | None
    """Number of an alarm or verdict; None for comparisons and notifications, which commits decide."""


class OutcomeLinesPart(NamedTuple):
    """Lines of consecutive outcomes, and the keys under which they are written."""

    written: Written
    keys: list[str]
    key_numbers: NDArray[np.int32]
    """Shape (n,)."""


class Publication(msgspec.Struct, frozen=True, array_like=True):
    """Outcomes and events of one commit."""

    commit: int
    outcomes_before: Ordinal
    """Number of the last outcome before this publication."""
    events_before: Ordinal
    """Number of the last numbered event before this publication."""
    outcomes: list[KeptOutcomes]
    """Outcomes in the order of evaluation."""
    events: list[Event]
    life: Name
    """Name of the sequence in which outcomes and events are numbered."""
    before: Digests | None = None
    """Digests up to `outcomes_before` and `events_before`; None without replicas that compare them."""
    digests: Digests | None = None
    """Digests up to its last outcome and event, likewise."""
    decisions: Decisions | None = None
    """Decisions of the holder up to this commit; None if it decided nothing new, or without replicas."""
    invalid: list[KeptRecord] = []
    """Invalid records that the holder writes; empty without replicas."""
    reached: RecordPosition | None = None
    """Position up to which it has all invalid records; None if replicas keep none."""

    @property
    def count(self) -> int:
        """Number of its outcomes."""
        return sum(kept.count for kept in self.outcomes)

    @property
    def last_outcome(self) -> int:
        """Number of its last outcome; `outcomes_before` without any."""
        return self.outcomes_before + self.count

    @property
    def last_event(self) -> int:
        """Number of its last numbered event; `events_before` without any."""
        return self.events_before + sum(event.number is not None for event in self.events)

    @property
    def size_bytes(self) -> int:
        """Number of bytes of outcomes, events and invalid records."""
        outcomes = sum(kept.size_bytes for kept in self.outcomes)
        events = sum(len(event.value) for event in self.events)
        return outcomes + events + sum(each.size_bytes for each in self.invalid)

    @property
    def records(self) -> int:
        """Number of its records."""
        return self.count + len(self.events) + len(self.invalid)

    def is_written(self, ledger: Ledger) -> bool:
        """Tell whether topics have its outcomes, numbered events and invalid records, by their ledger.

        If the ledger has no position of invalid records, these are ignored: its writer publishes none, or
        all of them before each commit.
        """
        has_numbers = self.last_outcome <= ledger.outcome and self.last_event <= ledger.event
        position = ledger.invalid
        return has_numbers and (not self.invalid or position is None or self.invalid[-1].position <= position)

    @property
    def decides(self) -> bool:
        """Tell whether it has decisions, or events that only the holder decides."""
        return self.decisions is not None or any(event.number is None for event in self.events)

    def numbered(self) -> Publication:
        """Return the publication without what only a holder decides, for a replica that is not the holder."""
        events = [each for each in self.events if each.number is not None]
        return msgspec.structs.replace(self, events=events, decisions=None)

    def outcome_digest(self, number: int) -> int | None:
        """Digest up to an outcome from `outcomes_before` to `last_outcome`; None for others."""
        if self.before is None or not self.outcomes_before <= number <= self.last_outcome:
            return None
        digest, first = self.before.outcomes, self.outcomes_before + 1
        for kept in self.outcomes:
            digest = added(digest, outcomes_sum(kept, first, max(0, number - first + 1)))
            first += kept.count
        return digest

    def event_digest(self, number: int) -> int | None:
        """Digest up to a numbered event from `events_before` to `last_event`; None for others."""
        if self.before is None or not self.events_before <= number <= self.last_event:
            return None
        digest = self.before.events
        for event in self.events:
            if event.number is not None and event.number <= number:
                digest = added(digest, event_term(event.value))
        return digest

    def lines(self) -> Iterator[OutcomeLinesPart]:
        """Write the outcomes as lines, in consecutive parts."""
        writer, first = OutcomeLines(self.life), self.outcomes_before + 1
        for kept in self.outcomes:
            keys, numbers = kept.topic_keys()
            yield OutcomeLinesPart(writer.of(kept, first), keys, numbers)
            first += kept.count

    def after(self, ledger: Ledger) -> Publication:
        """Return the publication without the numbered records that topics have by a ledger of the same life.

        These occur when an older copy of the state was restored. Events without a number are kept.
        """
        known = min(max(ledger.outcome - self.outcomes_before, 0), self.count)
        kept = [each for each in self.events if each.number is None or each.number > ledger.event]
        position = BEGINNING if ledger.invalid is None else ledger.invalid
        invalid = [each for each in self.invalid if each.position > position]
        if not known and len(kept) == len(self.events) and len(invalid) == len(self.invalid):
            return self
        outcomes, left = list[KeptOutcomes](), known
        for each in self.outcomes:
            if left < each.count:
                outcomes.append(each.after(left))
            left = max(0, left - each.count)
        return msgspec.structs.replace(
            self,
            outcomes_before=self.outcomes_before + known,
            events_before=max(self.events_before, min(ledger.event, self.last_event)),
            outcomes=outcomes,
            events=kept,
            invalid=invalid,
        )


_DECODER = msgspec.msgpack.Decoder(Publication)


def encoded(publication: Publication) -> bytes:
    """Encode a publication for a commit."""
    return _pack(publication)


def decoded(value: bytes) -> Publication:
    """Decode what `encoded` gave.

    Raises
    ------
    PublicationError
        If `value` is not a publication of this version.
    """
    try:
        publication = _DECODER.decode(value)
        for kept in publication.outcomes:
            kept.require_whole()
    except (ValueError, RecursionError) as error:  # MsgspecError and UnicodeDecodeError are ValueErrors
        raise PublicationError(f"a publication in the state cannot be read: {error}") from error
    return publication


class Ledger(msgspec.Struct, frozen=True):
    """Record of the ledger topic: numbers up to which the topics of a deployment are complete."""

    schema_version: int
    life: str
    """Name of the sequence of numbers written last."""
    commit: int
    """Number of the last commit whose publication is written."""
    outcome: int
    """Number of the last outcome written."""
    event: int
    """Number of the last numbered event written."""
    writer: str
    """Name of the process that wrote last."""
    digests: Digests | None = None
    """Digests up to `outcome` and `event`; None without replicas."""
    decisions: int = 0
    """Number of further records with the holder's `Decisions`."""
    decisions_digest: int = 0
    """Digest of these records (`candidacy.parts_digest`), so that new decisions alone change this record."""
    invalid: RecordPosition | None = None
    """Position up to which invalid records are in their topic; None if it is not recorded."""

    @classmethod
    def begun(cls, life: str, writer: str) -> Ledger:
        """Build a ledger with nothing written yet."""
        return cls(SCHEMA_VERSION, life, 0, 0, 0, writer)

    def with_written(self, publications: Sequence[Publication], writer: str) -> Ledger:
        """Return the ledger after these publications of a single process.

        What replicas wrote for each other before is not continued: the process decides by its own state.
        """
        alone = Ledger(self.schema_version, self.life, self.commit, self.outcome, self.event, writer)
        if not publications:
            return alone
        last = publications[-1]
        return msgspec.structs.replace(
            alone,
            commit=last.commit,
            outcome=max(self.outcome, last.last_outcome),
            event=max(self.event, last.last_event),
        )

    def with_shared(self, publications: Sequence[Publication], writer: str) -> Ledger:
        """Return the ledger after these publications of the holder.

        `commit` is 0, as numbers of commits differ between replicas.
        """
        after = msgspec.structs.replace(self, commit=0, writer=writer)
        for each in publications:
            digests, own = after.digests or Digests(), each.digests or Digests()
            if each.last_outcome >= after.outcome:
                digests = Digests(own.outcomes, digests.events)
                after = msgspec.structs.replace(after, outcome=each.last_outcome)
            if each.last_event >= after.event:
                digests = Digests(digests.outcomes, own.events)
                after = msgspec.structs.replace(after, event=each.last_event)
            position = (
                after.invalid if each.reached is None else max(each.reached, after.invalid or BEGINNING)
            )
            after = msgspec.structs.replace(after, digests=digests, invalid=position)
        return after

    def encode(self) -> bytes:
        """Encode as JSON."""
        return _json(self)

    @classmethod
    def decode(cls, value: bytes) -> Ledger:
        """Decode a record of the ledger topic.

        Raises
        ------
        PublicationError
            If `value` is not a ledger of this version.
        """
        try:
            found = msgspec.json.decode(value, type=cls)
        except (ValueError, RecursionError) as error:  # MsgspecError and UnicodeDecodeError are ValueErrors
            raise PublicationError(f"a record of the ledger topic cannot be read: {error}") from error
        if found.schema_version != SCHEMA_VERSION:
            raise PublicationError(
                f"a record of the ledger topic has version {found.schema_version}, expected {SCHEMA_VERSION}"
            )
        return found
