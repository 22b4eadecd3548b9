"""The life of an alarm: what is announced, what is held back, when it ends; a restart changes nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.alerting.book import details_with_incidents
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.notifying.class_shift import ClassShift, Moved
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.records.events import Alarm
from tests.core.alerting.stored import stored
from tests.core.alerting.watched_book import HOUR_MS, NOW_MS, RULE, WatchedBook, alarm
from tests.tiers import examples


def test_an_alarm_is_announced_with_all_it_says(watched: WatchedBook) -> None:
    found = alarm()
    (notification,) = watched.hears(found)
    assert (notification.kind, notification.severity, notification.news) == (
        "firing",
        "warning",
        ("page_hinkley",),
    )
    (part,) = notification.parts
    assert (part.alarm, part.before, part.started_at_ms, notification.issued_ms) == (
        found,
        0.1,
        found.event_ms,
        NOW_MS,
    )
    assert watched.counted("alarms_open") == {("m", "warning"): 1.0}


def test_ids_differ_in_everything_that_distinguishes_alarms() -> None:
    def name(found: Alarm, first_ms: int = 7, identity: str = "state-1") -> str:
        return WatchedBook(identity=identity, firsts={found.model: first_ms}).hears(found)[0].id

    assert name(alarm()) == name(alarm()), "the same alarm has the same id, whoever finds it"
    others = {
        name(alarm()),
        name(alarm(), identity="state-2"),
        name(alarm(), first_ms=8),
        name(alarm("n")),
        name(alarm(detector="adwin")),
        name(alarm(ordinal=2)),
        name(alarm(outcome=1_001)),
        name(alarm(event_ms=NOW_MS + 1)),
    }
    assert len(others) == 8
    assert all("." not in other and other.isascii() for other in others), "a signature joins it with dots"


def test_alarms_of_a_young_model_are_counted_and_not_announced(watched: WatchedBook) -> None:
    assert watched.hears(alarm(outcome=99)) == []
    assert watched.counted("alarms_suppressed_total")["min_outcomes",] == 1.0
    assert len(watched.hears(alarm(ordinal=2, outcome=100))) == 1


SHIFT = ClassShift("classes", 0.135, 0.135, 0.0, 0.02, Moved("c1", 0.1, 0.4), None)


def test_which_it_looked_like_when_an_alarm_began_stays_until_another_begins(watched: WatchedBook) -> None:
    watched.shifts["m"] = SHIFT
    (first,) = watched.hears(alarm())
    watched.shifts["m"] = msgspec.structs.replace(SHIFT, looks_like="unclear")
    watched.hears(alarm(ordinal=2))
    (joined,) = watched.hears(alarm(detector="adwin"))
    assert [n.shift.looks_like for n in (first, joined) if n.shift] == ["classes", "unclear"]
    del watched.shifts["m"]
    watched.found["m"] = Level(0.1, 0.03, 2_000, 9_000)
    (over,) = watched.reviews()
    assert over.shift == joined.shift


def test_the_segment_in_which_the_change_sits_stays_until_another_is_found(watched: WatchedBook) -> None:
    watched.segments["m"] = SegmentChange("country", "DE", 0.9, 0.2, 0.1, 0.6)
    (first,) = watched.hears(alarm())
    del watched.segments["m"]
    (joined,) = watched.hears(alarm(detector="adwin"))
    assert [n.segment.value for n in (first, joined) if n.segment] == ["DE", "DE"]


def test_a_second_alarm_of_an_open_one_updates_it(watched: WatchedBook) -> None:
    (first,) = watched.hears(alarm())
    later = alarm(ordinal=2, outcome=5_000, event_ms=NOW_MS + HOUR_MS, before=0.4, after=0.6)
    assert watched.hears(later, now_ms=NOW_MS + HOUR_MS) == []
    (incident,) = watched.book.open_incidents()
    (part,) = incident.parts
    assert (incident.id, part.alarm, part.alarms) == (first.id, later, 2)
    assert (part.started_at_ms, part.before) == (NOW_MS, 0.1), "what began it stays"
    assert watched.counted("alarms_suppressed_total")["already_open",] == 1.0


def test_models_have_incidents_of_their_own(watched: WatchedBook) -> None:
    notifications = watched.hears(alarm(), alarm("n"))
    assert len({notification.incident for notification in notifications}) == 2


def test_after_a_resolved_alarm_the_cooldown_is_kept_in_event_time(watched: WatchedBook) -> None:
    watched.hears(alarm())
    watched.found["m"] = Level(0.1, 0.03, 2_000, 9_000)
    watched.reviews()
    assert watched.hears(alarm(ordinal=2, event_ms=NOW_MS + 599_999), now_ms=NOW_MS + 9 * HOUR_MS) == []
    assert watched.hears(alarm(ordinal=2, event_ms=NOW_MS - 599_999)) == [], (
        "event times need not be in order"
    )
    assert watched.counted("alarms_suppressed_total")["cooldown",] == 2.0
    assert len(watched.hears(alarm(ordinal=3, event_ms=NOW_MS + 600_000))) == 1


def test_the_first_rule_that_matches_holds() -> None:
    rules = (
        AlarmRule("adwin*", "fraud-*", "critical", 0, 0),
        AlarmRule("*", "fraud-*", "error", 0, 5_000),
    )
    watched = WatchedBook(AlarmsSpec(rules, RULE))
    notifications = watched.hears(
        alarm("fraud-1", "adwin_slow"),
        alarm("fraud-1"),
        alarm("clicks", outcome=4_999),
        alarm("clicks", "adwin"),
    )
    assert [(p.alarm.model, p.severity) for n in notifications for p in n.parts] == [
        ("fraud-1", "critical"),
        ("clicks", "warning"),
        ("clicks", "warning"),
    ]


def test_a_retired_model_ends_its_alarms_and_is_forgotten(watched: WatchedBook) -> None:
    empty = watched.book.state()
    watched.hears(alarm(), alarm(detector="adwin"))
    notifications = watched.book.retire("m", NOW_MS)
    (notification,) = notifications
    assert notification.kind == "resolved"
    assert [p.reason for p in notification.parts] == ["model_retired"] * 2
    assert watched.book.state() == empty
    assert watched.book.retire("never seen", NOW_MS) == []


def test_old_alarms_of_a_backlog_leave_as_one_digest_when_it_has_been_read(watched: WatchedBook) -> None:
    for i in range(300):
        old = alarm(f"m{i % 3}", ordinal=i, event_ms=NOW_MS - 72 * HOUR_MS + i)
        assert watched.hears(old, behind=True) == []
        assert watched.reviews(behind=True) == []
    (fresh,) = watched.hears(alarm("m0", event_ms=NOW_MS - HOUR_MS), behind=True)
    assert fresh.kind == "firing", "what is not old is watched at once"
    (notification,) = watched.reviews()
    assert (notification.kind, notification.severity) == ("digest", "warning")
    assert notification.digest is not None
    assert notification.digest.alarms == 300
    assert notification.digest.first_at_ms == NOW_MS - 72 * HOUR_MS
    assert notification.digest.last_at_ms == NOW_MS - 72 * HOUR_MS + 299
    assert [(t.model, t.alarms) for t in notification.digest.tallies] == [
        ("m0", 100),
        ("m1", 100),
        ("m2", 100),
    ]
    assert [a.ordinal for a in notification.digest.earliest] == list(range(20))
    assert watched.reviews() == [], "once"
    assert watched.counted("alarms_digested_total") == {(): 300.0}


def test_a_backlog_that_takes_long_is_notified_in_between(watched: WatchedBook) -> None:
    watched.hears(alarm(event_ms=0), behind=True)
    assert watched.reviews(NOW_MS + 599_999, behind=True) == []
    assert not watched.book.due(NOW_MS + 599_999, behind=True)
    assert watched.book.due(NOW_MS + 600_000, behind=True)
    assert watched.book.due(NOW_MS, behind=False)
    (first,) = watched.reviews(NOW_MS + 600_000, behind=True)
    state = watched.book.state()
    watched = WatchedBook()
    watched.book.restore(state)
    watched.hears(alarm(event_ms=1), now_ms=NOW_MS + 600_001, behind=True)
    (second,) = watched.reviews(NOW_MS + 600_002)
    assert first.id != second.id


def test_an_old_event_time_is_no_digest_when_nothing_is_behind(watched: WatchedBook) -> None:
    """Labels may carry times of their own from long ago."""
    assert [n.kind for n in watched.hears(alarm(event_ms=0))] == ["firing"]


def test_a_digest_is_as_severe_as_the_worst_in_it() -> None:
    watched = WatchedBook(AlarmsSpec((AlarmRule("*", "b", "critical", 0, 0),), RULE))
    watched.hears(*(alarm(m, event_ms=0) for m in "abc"), behind=True)
    (notification,) = watched.reviews()
    assert notification.severity == "critical"


def test_state_of_another_version_is_refused(watched: WatchedBook) -> None:
    state = msgspec.msgpack.decode(watched.book.state())
    with pytest.raises(
        PackedError, match="section 'alarms' cannot be read: expected an alarm book of version 5, got 6"
    ):
        watched.book.restore(msgspec.msgpack.encode({**state, "version": 6}))


def test_notifications_come_back_from_their_bytes_with_undefined_numbers() -> None:
    notification = WatchedBook().hears(alarm(before=float("nan"), after=float("inf")))[0]
    assert str(stored(notification)) == str(notification)


STEP = st.tuples(
    st.lists(
        st.builds(
            alarm,
            model=st.sampled_from("abc"),
            detector=st.sampled_from(["adwin", "page_hinkley"]),
            ordinal=st.integers(1, 50),
            outcome=st.integers(50, 5_000),
            event_ms=st.integers(NOW_MS - 3 * HOUR_MS, NOW_MS + 40 * HOUR_MS),
            before=st.floats(0, 1),
            after=st.floats(0, 1),
        ),
        max_size=4,
    ),
    st.dictionaries(
        st.sampled_from("abc"),
        st.builds(
            Level,
            st.floats(0, 1),
            st.floats(0, 1),
            st.floats(1, 3_000),
            st.integers(50, 9_000),
            st.none() | st.integers(0, 50),
        ),
    ),
    st.integers(0, 12 * HOUR_MS),
    st.booleans(),
    st.sampled_from([None, None, None, "a", "b"]),
    st.booleans(),
)


@given(st.lists(STEP, max_size=12))
@settings(max_examples=examples(1.5))
def test_a_restart_at_any_point_repeats_nothing_and_loses_nothing(steps: list[tuple[object, ...]]) -> None:
    lasting, restarted = WatchedBook(), WatchedBook()
    now_ms = NOW_MS
    for alarms, levels, passed_ms, behind, retired, restart in steps:
        now_ms += passed_ms  # type: ignore[operator]
        issued = []
        for watched in (lasting, restarted):
            watched.found = levels  # type: ignore[assignment]
            notifications = watched.hears(*alarms, now_ms=now_ms, behind=behind)  # type: ignore[arg-type, misc]
            notifications += watched.book.retire(retired, now_ms) if retired else []  # type: ignore[arg-type]
            issued.append(notifications + watched.reviews(now_ms, behind=bool(behind)))
        assert issued[0] == issued[1]
        assert lasting.book.open_incidents() == restarted.book.open_incidents()
        assert lasting.book.state() == restarted.book.state()
        if restart:
            state = restarted.book.state()
            restarted = WatchedBook()
            restarted.book.restore(state)
            assert restarted.book.state() == state
            assert restarted.book.families() == lasting.book.families()


def test_an_alarm_carries_how_many_false_ones_its_detector_raises() -> None:
    watched = WatchedBook(falsely={"page_hinkley": 0.2})
    (notification,) = watched.hears(alarm())
    assert notification.parts[0].false_monthly == 0.2
    (shown,) = details_with_incidents({"m": {}}, watched.book.open_incidents())["m"]["open_incidents"]  # type: ignore[misc]
    assert shown["alarms"][0]["false_alarms_expected_monthly"] == 0.2
    (other,) = WatchedBook().hears(alarm())
    assert other.parts[0].false_monthly is None
    (shown,) = details_with_incidents({"m": {}}, [other])["m"]["open_incidents"]  # type: ignore[misc]
    assert "false_alarms_expected_monthly" not in shown["alarms"][0]
