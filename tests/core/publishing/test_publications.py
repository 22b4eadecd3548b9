"""Publications of commits: numbered through restarts, of the published shape, cut where topics have them."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import numpy as np
import pytest

from streamwatch.core.alerting.notification import IncidentAlarm, Notification
from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
from streamwatch.core.publishing.documents import EventDocument, OutcomeDocument, json_schema
from streamwatch.core.publishing.publication_log import PublicationLog, alarm_document
from streamwatch.core.publishing.publications import (
    Event,
    Ledger,
    Publication,
    PublicationError,
    decoded,
    encoded,
)
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import Alarm, Judgement, Label
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from tests.core.publishing.test_outcome_lines import digests
from tests.daemon.fake_transactions import publication, records_of

DRIFT = Alarm("fraud", "adwin", 1, 400, 5_000, 5_000, 0.3, 0.2, 0.1, float("nan"), 200.0)
VERDICT = Alarm(
    "fraud",
    "verdict",
    2,
    500,
    6_000,
    6_000,
    21.0,
    20.0,
    0.0,
    -1.0,
    500.0,
    Judgement("no_change", -1, 300, 4_000),
)
OPEN = Alarm(
    "fraud",
    "verdict",
    3,
    600,
    7_000,
    7_000,
    0.0,
    20.0,
    -1.0,
    0.0,
    600.0,
    Judgement("no_change", 0, 550, 6_500),
)
FIRING = Notification(
    "firing_1",
    "firing",
    "warning",
    8_000,
    "incident_1",
    (IncidentAlarm(DRIFT, "warning", 5_000, 5_000, 0.1, 8_000),),
    ("adwin",),
)


class Log:
    """A log of one life after the other, of a state that keeps its section."""

    def __init__(self) -> None:
        self.verdicts: list[ComparisonVerdict] = []
        self.section: bytes | None = None
        self.commit = 7
        self.open()

    def open(self, *, outcomes: bool = True, events: bool = True) -> PublicationLog:
        self.log = PublicationLog(
            "state",
            self.commit,
            outcomes=outcomes,
            events=events,
            ids_at_hand=True,
            comparisons=lambda: self.verdicts,
            section=self.section,
        )
        return self.log

    def take(self, *ids: str, model: str = "fraud") -> None:
        records = np.zeros(len(ids), OUTCOME)
        records["high"], records["low"] = digests(ids)
        batch = OutcomeBatch(records, [model], ["a"])
        self.log.take(batch, batch_of([Label(each, "a", 1) for each in ids], np.arange(len(ids))))

    def close(self, *alarms: Alarm, notifications: tuple[Notification, ...] = ()) -> Publication | None:
        self.commit += 1
        publication = (self.log.note(alarms), self.log.close(self.commit, notifications))[1]
        self.section = self.log.section()
        return publication


def documents(publication: Publication | None) -> list[dict[str, object]]:
    assert publication is not None
    return [json.loads(line) for _, line in records_of(publication)]


def test_numbers_go_on_where_the_last_commit_left_them_and_begin_anew_with_another_life() -> None:
    state = Log()
    state.take("1", "2")
    state.take("3")
    first = state.close(DRIFT)
    state.open()
    state.take("4")
    second = state.close(VERDICT)
    assert [d["number"] for d in documents(first) + documents(second)] == [1, 2, 3, 4]
    assert [d["id"] for d in documents(first) + documents(second)] == ["1", "2", "3", "4"]
    assert first is not None
    assert second is not None
    assert [event.number for event in (*first.events, *second.events)] == [1, 2]
    assert {d["life"] for d in documents(first) + documents(second)} == {"state.7"}
    state.section = None  # the state was emptied, and keeps its identity and the numbers of its commits
    state.open()
    state.take("1")
    [anew] = documents(state.close())
    assert (anew["number"], anew["life"]) == (1, "state.9")


def test_what_was_taken_after_the_last_commit_is_taken_again() -> None:
    state = Log()
    state.take("1", "2")
    state.open()
    state.take("1")
    assert [d["number"] for d in documents(state.close())] == [1]


def test_a_commit_without_outcomes_and_events_publishes_nothing() -> None:
    state = Log()
    assert state.close() is None
    state.open(outcomes=False, events=False)
    state.take("1")
    assert state.close(DRIFT, notifications=(FIRING,)) is None


def test_events_are_of_the_published_schema_and_say_what_happened() -> None:
    state = Log()
    state.verdicts = [
        ComparisonVerdict("a", "b", 1, 3_000, 9_000),
        ComparisonVerdict("a", "c", 0, None, 9_000),
    ]
    published = state.close(DRIFT, VERDICT, OPEN, notifications=(FIRING,))
    assert published is not None
    found = [json.loads(event.value) for event in published.events]
    schema = json_schema(EventDocument)
    jsonschema.Draft202012Validator.check_schema(schema)
    for document, event in zip(found, published.events, strict=True):
        jsonschema.validate(document, schema)
        assert (event.key, event.number) == (document["model"], document["number"])
    drift, worse, is_open, better, firing = found
    assert (drift["type"], drift["error_before"], drift["error_after"]) == ("alarm", 0.1, None)
    assert (worse["type"], worse["verdict"], worse["opponent"]) == ("verdict", "worse", "no_change")
    assert worse["since_timestamp_ms"] == 4_000
    assert (is_open["verdict"], is_open["since_timestamp_ms"]) == ("open", None)
    assert (better["type"], better["model"], better["opponent"], better["verdict"]) == (
        "comparison",
        "b",
        "a",
        "better",
    )
    assert (firing["id"], firing["kind"], firing["detectors"]) == ("firing_1", "firing", ["adwin"])
    assert [event.number for event in published.events] == [1, 2, 3, None, None]


def test_a_comparison_is_published_when_its_verdict_changes_only_and_after_a_restart() -> None:
    state = Log()
    state.verdicts = [ComparisonVerdict("a", "b", 1, 3_000, 9_000)]
    assert state.close() is not None
    assert state.close() is None
    state.open()
    assert state.close() is None
    state.verdicts = [ComparisonVerdict("a", "b", 0, None, 9_500)]
    publication = state.close()
    assert publication is not None
    assert json.loads(publication.events[0].value)["verdict"] == "open"


def test_the_schema_of_outcomes_describes_their_lines() -> None:
    state = Log()
    state.take("1", 'x"y')
    schema = json_schema(OutcomeDocument)
    jsonschema.Draft202012Validator.check_schema(schema)
    for document in documents(state.close()):
        jsonschema.validate(document, schema)
        assert list(document) == list(schema["properties"])


@pytest.mark.parametrize("known", range(12))
def test_what_a_ledger_has_is_left_out_and_no_more(known: int) -> None:
    events = [Event("m", b"1", 5), Event("m", b"n", None), Event("m", b"2", 6)]
    parts = [publication(9, 4, 1, events, 4, ["a", "b"]), publication(9, 5, 2, models=["a", "b"])]
    whole = msgspec.structs.replace(parts[0], outcomes=[*parts[0].outcomes, *parts[1].outcomes])
    ledger = Ledger(1, "life", 1, known, known, "writer")
    left = decoded(encoded(whole)).after(ledger)
    documents = [(key, json.loads(line)) for key, line in records_of(left)]
    expected = [(key, n) for key, n in (("a", 4), ("b", 5), ("a", 6)) if n > known]
    assert [(key, document["number"]) for key, document in documents] == expected
    assert [document["id"] for _, document in documents] == [str(n) for _, n in expected]
    assert [event.value for event in left.events] == [
        value for value, number in ((b"1", 5), (b"n", 99), (b"2", 6)) if number > known
    ]
    assert (left.last_outcome, left.last_event) == (6, 6)
    after = ledger.with_written([whole], "writer")
    assert (after.commit, after.outcome, after.event) == (9, max(known, 6), max(known, 6))


def test_what_is_no_publication_is_refused() -> None:
    with pytest.raises(PublicationError, match="cannot be read"):
        decoded(b"\x93")
    with pytest.raises(PublicationError, match="version 2, expected 1"):
        Ledger.decode(Ledger(2, "life", 1, 1, 1, "w").encode())
    state = Log()
    state.section = b"\x93"
    with pytest.raises(PublicationError, match="section 'publishing'"):
        state.open()


DEEP = 100_000


@pytest.mark.parametrize(
    "value",
    [b'{"life": "\xff"}', b'{"odd": ' + b"[" * DEEP + b"]" * DEEP + b"}"],
    ids=["no UTF-8", "too deep"],
)
def test_a_ledger_that_no_program_of_ours_has_written_is_refused(value: bytes) -> None:
    with pytest.raises(PublicationError, match="a record of the ledger topic cannot be read"):
        Ledger.decode(value)


def test_a_text_that_is_no_utf_8_is_refused_in_a_publication_and_in_its_section() -> None:
    written = encoded(publication(4, 1, 2)).replace(b"state", b"st\xffte")
    assert b"st\xffte" in written
    with pytest.raises(PublicationError, match="a publication in the state cannot be read"):
        decoded(written)
    state = Log()
    state.section = b"\x81\xa4life\xa1\xff"
    with pytest.raises(PublicationError, match="section 'publishing'"):
        state.open()


def test_alarms_of_a_model_that_came_back_have_ids_of_their_own() -> None:
    again = [alarm_document(DRIFT, "life", number) for number in (7, 8)]
    assert len({document.id for document in again}) == 2
    assert [document.ordinal for document in again] == [1, 1]
