"""Publications of replicas: digests up to every number, the ledger after them, and what is undecided."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest

from streamwatch.core.publishing.candidacy import Decisions
from streamwatch.core.publishing.kept import BEGINNING, Digests, KeptRecord
from streamwatch.core.publishing.publication_log import PublicationLog
from streamwatch.core.publishing.publications import Event, Ledger, Publication, PublicationError
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import Alarm, Label
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from tests.edge.decoders.records import FakeRecord

ALARMS = [Alarm("m", "adwin", n, 40 * n, 5_000, 5_000, 0.3, 0.2, 0.1, 0.2, 9.0) for n in range(1, 6)]


def new_log(section: bytes | None = None, commits: int = 0) -> PublicationLog:
    """A log of a replica."""
    return PublicationLog(
        "state",
        commits,
        outcomes=False,
        events=False,
        ids_at_hand=True,
        comparisons=list,
        section=section,
        deployment="risk",
    )


def take(log: PublicationLog, first: int, count: int) -> None:
    """Take outcomes that differ in their delays, numbered from `first`."""
    records = np.zeros(count, OUTCOME)
    records["delay_ms"] = np.arange(first, first + count)
    ids = [str(number) for number in range(first, first + count)]
    log.take(
        OutcomeBatch(records, ["m"], ["a"]), batch_of([Label(each, "a", 1) for each in ids], np.arange(count))
    )


def digests_one_by_one(outcomes: int) -> list[Digests]:
    """Digests after each outcome, and after each alarm, of a log that takes them singly."""
    log, found = new_log(), [Digests()]
    for number in range(1, outcomes + 1):
        take(log, number, 1)
        if number <= len(ALARMS):
            log.note(ALARMS[number - 1 : number])
        found.append(log.digests)
    return found


def test_a_publication_has_the_digest_up_to_each_of_its_numbers_and_to_no_other() -> None:
    expected, log = digests_one_by_one(10), new_log()
    take(log, 1, 2)
    log.note(ALARMS[:1])
    log.close(1, ())
    for first, count in ((3, 1), (4, 3), (7, 2)):
        take(log, first, count)
    log.note(ALARMS[1:4])
    found = log.close(2, ())
    assert found is not None
    assert (found.last_outcome, found.last_event) == (8, 4)
    assert [found.outcome_digest(n) for n in range(11)] == [
        expected[n].outcomes if 2 <= n <= 8 else None for n in range(11)
    ]
    assert [found.event_digest(n) for n in range(6)] == [
        expected[n].events if 1 <= n <= 4 else None for n in range(6)
    ]
    assert (found.before, found.digests) == (
        Digests(expected[2].outcomes, expected[1].events),
        Digests(expected[8].outcomes, expected[4].events),
    )
    single = msgspec.structs.replace(found, before=None)
    assert single.outcome_digest(5) is None
    assert single.event_digest(2) is None


def test_a_digest_of_events_leaves_out_those_that_have_no_number() -> None:
    log = new_log()
    log.note(ALARMS[:2])
    found = log.close(1, ())
    assert found is not None
    first, second = found.events
    both = msgspec.structs.replace(found, events=[first, Event("c", b"decided", None), second])
    assert [both.event_digest(n) for n in range(3)] == [found.event_digest(n) for n in range(3)]
    assert both.last_event == 2


def test_a_state_goes_on_with_numbers_digests_and_all_that_is_undecided() -> None:
    log = new_log()
    take(log, 1, 3)
    log.note(ALARMS[:3], ["x", "y"])
    log.close(1, ())
    log.continue_from([("b", "c", -1), ("a", "b", 1)])
    again = new_log(log.section(), 9)
    for each in (log, again):
        assert (each.life, each.outcomes, each.events, each.retired) == ("risk", 3, 3, 2)
        assert each.digests == log.digests != Digests()
        assert each.verdicts == [("a", "b", 1), ("b", "c", -1)]
        assert each.undecided(0, 0) == (ALARMS[:3], ["x", "y"])
    again.note(ALARMS[3:4], ["z"])
    for event, retired, left in ((0, 0, 4), (2, 1, 2), (3, 2, 1), (4, 3, 0)):
        expected = ALARMS[event:4], ["x", "y", "z"][retired:]
        assert again.undecided(event, retired) == expected
        again.decided(event, retired)
        assert again.undecided(0, 0) == expected
        assert len(expected[0]) == left


def publication(outcome: int, event: int, reached: tuple[int, int] | None = None) -> Publication:
    """An empty publication up to these numbers, which are its digests, too."""
    digests = Digests(100 + outcome, 200 + event)
    return Publication(4, outcome, event, [], [], "risk", digests, digests, reached=reached)


def test_a_ledger_has_the_largest_numbers_with_their_digests() -> None:
    ledger = Ledger(1, "risk", 7, 5, 5, "w", Digests(105, 205))
    after = ledger.with_shared([publication(4, 6), publication(7, 5), publication(6, 4)], "v")
    assert (after.commit, after.outcome, after.event, after.writer) == (0, 7, 6, "v")
    assert after.digests == Digests(107, 206)
    assert after.invalid is None
    begun = Ledger.begun("risk", "w").with_shared([publication(0, 2)], "w")
    assert (begun.outcome, begun.event, begun.digests) == (0, 2, Digests(100, 202))
    assert ledger.with_shared([], "v") == msgspec.structs.replace(ledger, commit=0, writer="v")


@pytest.mark.parametrize(
    ("before", "reached", "expected"),
    [
        (None, None, None),
        (None, (5, 0), (5, 0)),
        (None, (-2, 0), BEGINNING),
        ((5, 1), None, (5, 1)),
        ((5, 1), (5, 2), (5, 2)),
        ((5, 1), (4, 9), (5, 1)),
    ],
)
def test_a_ledger_has_the_last_position_of_invalid_records(
    before: tuple[int, int] | None, reached: tuple[int, int] | None, expected: tuple[int, int] | None
) -> None:
    ledger = Ledger(1, "risk", 0, 0, 0, "w", invalid=before)
    assert ledger.with_shared([publication(0, 0, reached)], "w").invalid == expected


def invalid(*positions: tuple[int, int]) -> list[KeptRecord]:
    return [
        KeptRecord(each, "invalid_json", "t", 0, n, None, b"x", [], 1, 0) for n, each in enumerate(positions)
    ]


def test_what_topics_have_is_told_by_all_numbers_of_their_ledger() -> None:
    whole = msgspec.structs.replace(publication(6, 3), invalid=invalid((5, 1), (5, 2)))
    for outcome, event, position, is_written in (
        (6, 3, (5, 2), True),
        (7, 4, (6, 0), True),
        (6, 3, None, True),
        (5, 3, (5, 2), False),
        (6, 2, (5, 2), False),
        (6, 3, (5, 1), False),
    ):
        ledger = Ledger(1, "risk", 0, outcome, event, "w", invalid=position)
        assert whole.is_written(ledger) is is_written
    assert publication(6, 3).is_written(Ledger(1, "risk", 0, 6, 3, "w", invalid=BEGINNING))


@pytest.mark.parametrize(("position", "left"), [(None, 2), ((5, 0), 2), ((5, 1), 1), ((5, 2), 0)])
def test_invalid_records_that_topics_have_are_left_out(position: tuple[int, int] | None, left: int) -> None:
    whole = msgspec.structs.replace(publication(0, 0), invalid=invalid((5, 1), (5, 2)))
    found = whole.after(Ledger(1, "risk", 0, 0, 0, "w", invalid=position))
    assert found.invalid == whole.invalid[2 - left :]
    assert (found is whole) is (left == 2)


def test_a_replica_keeps_what_has_numbers_and_only_the_holder_what_it_decided() -> None:
    decisions = Decisions(1, 0, b"", b"", {}, [])
    events = [Event("m", b"1", 1), Event("n", b"2", None)]
    for own, by, decides in (
        (events, None, True),
        (events[:1], None, False),
        (events[:1], decisions, True),
        ([], None, False),
    ):
        found = msgspec.structs.replace(publication(0, 0), events=own, decisions=by)
        assert found.decides is decides
        numbered = found.numbered()
        assert (numbered.events, numbered.decisions, numbered.decides) == (own[:1], None, False)


def test_invalid_records_are_kept_with_the_position_that_the_state_reached() -> None:
    log, clock_ms = new_log(), [40]
    keeper = log.keep_invalid(lambda: clock_ms[0])
    record = FakeRecord(b"v", b"k")
    keeper.keep(record, "invalid_json", 30)
    keeper.keep(record, "invalid_json", 30)
    found = log.close(1, ())
    assert found is not None
    assert [each.position for each in found.invalid] == [(30, 1), (30, 2)]
    assert (found.reached, found.records) == ((40, 0), 2)
    assert found.size_bytes == sum(each.size_bytes for each in found.invalid) == 4
    assert log.close(2, ()) is None
    assert log.nothing(2) == Publication(2, 0, 0, [], [], "risk", Digests(), Digests(), reached=(40, 0))
    again = new_log(log.section())
    again.keep_invalid(lambda: 35).keep(record, "invalid_json", 40)
    after = again.close(3, ())
    assert after is not None
    assert [each.position for each in after.invalid] == [(40, 1)]
    assert new_log().nothing(1).reached is None


def test_publications_follow_each_other_without_a_gap() -> None:
    log, found = new_log(), list[Publication]()
    for commit, (first, count) in enumerate(((1, 2), (3, 1), (4, 3)), 1):
        take(log, first, count)
        log.note(ALARMS[commit : commit + 1])
        closed = log.close(commit, (), decides=False)
        assert closed is not None
        found.append(closed)
    for before, after in pairwise(found):
        assert (after.outcomes_before, after.events_before) == (before.last_outcome, before.last_event)
        assert after.before == before.digests
    assert found[-1].records == 4


def test_a_section_and_a_ledger_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(PublicationError, match="the section 'publishing' cannot be read"):
        new_log(b"\x93")
    with pytest.raises(PublicationError, match="a record of the ledger topic cannot be read"):
        Ledger.decode(b"{")
