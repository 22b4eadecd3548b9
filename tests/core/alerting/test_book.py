"""The life of an alarm: what is announced, what is held back, when it ends; a restart changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification, decode, encode
from streamwatch.core.alerting.resolution import is_back
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.agreement import Totals
from streamwatch.core.estimators.class_shift import ClassShift, Moved
from streamwatch.core.estimators.level import Level, levels_of
from streamwatch.core.estimators.registers.segments.change import SegmentChange
from streamwatch.core.events import Alarm, Judgement
from tests.tiers import examples

HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
RULE = AlarmRule(cooldown_ms=600_000, min_outcomes=100)
SPEC = AlarmsSpec(otherwise=RULE)


def alarm(
    model: str = "m",
    detector: str = "page_hinkley",
    ordinal: int = 1,
    outcome: int = 1_000,
    event_ms: int = NOW_MS,
    before: float = 0.1,
    after: float = 0.4,
) -> Alarm:
    return Alarm(model, detector, ordinal, outcome, event_ms, 51.0, 50.0, before, after, 900.0)


@dataclass
class Told:
    """A book, and what it says when it is told things."""

    spec: AlarmsSpec = SPEC
    identity: str = "state-1"
    found: dict[str, Level] = field(default_factory=dict)
    firsts: dict[str, int] = field(default_factory=dict)
    shifts: dict[str, ClassShift] = field(default_factory=dict)
    segments: dict[str, SegmentChange] = field(default_factory=dict)
    asked: list[Sequence[str]] = field(default_factory=list)
    misled: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.book = AlarmBook(self.spec, self.identity)

    def hears(self, *alarms: Alarm, now_ms: int = NOW_MS, behind: bool = False) -> list[Notification]:
        return self.book.announce(alarms, now_ms, self, behind=behind)

    def reviews(self, now_ms: int = NOW_MS, *, behind: bool = False) -> list[Notification]:
        return self.book.review(self, now_ms, behind=behind)

    def counted(self, name: str) -> dict[tuple[str, ...], float]:
        return {k: float(v) for f in self.book.families() if f.name == name for k, v in f.samples}  # type: ignore[arg-type]

    def first_ms(self, model: str) -> int:
        return self.firsts.get(model, 7)

    def accuracy_misleads(self, model: str) -> bool:
        return model in self.misled

    def class_shift(self, model: str, level: float) -> ClassShift | None:
        del level
        return self.shifts.get(model)

    def segment_change(self, model: str) -> SegmentChange | None:
        return self.segments.get(model)

    def levels(self, models: Sequence[str]) -> Mapping[str, Level]:
        self.asked.append(models)
        return {m: self.found[m] for m in models if m in self.found}


@pytest.fixture
def told() -> Told:
    return Told()


def test_an_alarm_is_announced_with_all_it_says(told: Told) -> None:
    found = alarm()
    (notification,) = told.hears(found)
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
    assert told.counted("alarms_open") == {("m", "warning"): 1.0}


def test_ids_differ_in_everything_that_tells_alarms_apart() -> None:
    def name(found: Alarm, first_ms: int = 7, identity: str = "state-1") -> str:
        return Told(identity=identity, firsts={found.model: first_ms}).hears(found)[0].id

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


def test_alarms_of_a_young_model_are_counted_and_not_announced(told: Told) -> None:
    assert told.hears(alarm(outcome=99)) == []
    assert told.counted("alarms_suppressed_total")["min_outcomes",] == 1.0
    assert len(told.hears(alarm(ordinal=2, outcome=100))) == 1


SHIFT = ClassShift("classes", 0.135, 0.135, 0.0, 0.02, Moved("c1", 0.1, 0.4), None)


def test_which_it_looked_like_when_an_alarm_began_stays_until_another_begins(told: Told) -> None:
    told.shifts["m"] = SHIFT
    (first,) = told.hears(alarm())
    told.shifts["m"] = msgspec.structs.replace(SHIFT, looks_like="unclear")
    told.hears(alarm(ordinal=2))
    (joined,) = told.hears(alarm(detector="adwin"))
    assert [n.shift.looks_like for n in (first, joined) if n.shift] == ["classes", "unclear"]
    del told.shifts["m"]
    told.found["m"] = Level(0.1, 0.03, 2_000, 9_000)
    (over,) = told.reviews()
    assert over.shift == joined.shift


def test_the_segment_in_which_the_change_sits_stays_until_another_is_found(told: Told) -> None:
    told.segments["m"] = SegmentChange("country", "DE", 0.9, 0.2, 0.1, 0.6)
    (first,) = told.hears(alarm())
    del told.segments["m"]
    (joined,) = told.hears(alarm(detector="adwin"))
    assert [n.segment.value for n in (first, joined) if n.segment] == ["DE", "DE"]


def test_a_second_alarm_of_an_open_one_updates_it(told: Told) -> None:
    (first,) = told.hears(alarm())
    later = alarm(ordinal=2, outcome=5_000, event_ms=NOW_MS + HOUR_MS, before=0.4, after=0.6)
    assert told.hears(later, now_ms=NOW_MS + HOUR_MS) == []
    (incident,) = told.book.open_incidents()
    (part,) = incident.parts
    assert (incident.id, part.alarm, part.alarms) == (first.id, later, 2)
    assert (part.started_at_ms, part.before) == (NOW_MS, 0.1), "what began it stays"
    assert told.counted("alarms_suppressed_total")["already_open",] == 1.0


def test_models_have_incidents_of_their_own(told: Told) -> None:
    notifications = told.hears(alarm(), alarm("n"))
    assert len({notification.incident for notification in notifications}) == 2


def test_after_a_resolved_alarm_the_cooldown_is_kept_in_event_time(told: Told) -> None:
    told.hears(alarm())
    told.found["m"] = Level(0.1, 0.03, 2_000, 9_000)
    told.reviews()
    assert told.hears(alarm(ordinal=2, event_ms=NOW_MS + 599_999), now_ms=NOW_MS + 9 * HOUR_MS) == []
    assert told.hears(alarm(ordinal=2, event_ms=NOW_MS - 599_999)) == [], "event times need not be in order"
    assert told.counted("alarms_suppressed_total")["cooldown",] == 2.0
    assert len(told.hears(alarm(ordinal=3, event_ms=NOW_MS + 600_000))) == 1


def test_the_first_rule_that_matches_holds() -> None:
    rules = (
        AlarmRule("adwin*", "fraud-*", "critical", 0, 0),
        AlarmRule("*", "fraud-*", "error", 0, 5_000),
    )
    told = Told(AlarmsSpec(rules, RULE))
    notifications = told.hears(
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


@pytest.mark.parametrize(
    ("error", "bound", "outcomes", "over"),
    [
        (0.131, 0.03, 3_000, False),
        (0.130, 0.03, 3_000, True),
        (0.05, 0.03, 3_000, True),
        (0.10, 0.03, 2_999, False),
    ],
    ids=["outside its bound", "within its bound", "better than before", "the level still tells of the past"],
)
def test_an_alarm_is_over_when_the_faded_error_is_back_within_its_bound(
    told: Told, error: float, bound: float, outcomes: int, *, over: bool
) -> None:
    (firing,) = told.hears(alarm(before=0.1, outcome=1_000))
    told.found["m"] = Level(error, bound, 2_000.0, outcomes)
    notifications = told.reviews(NOW_MS + 60_000)
    assert [(n.kind, n.parts[0].reason, n.incident) for n in notifications] == (
        [("resolved", "back_to_level", firing.incident)] if over else []
    )
    if over:
        assert notifications[0].id != firing.id
        assert notifications[0].ended_at_ms == NOW_MS + 60_000
        assert told.book.open_incidents() == []


def test_an_alarm_right_after_a_drift_is_not_over_though_the_faded_error_has_hardly_moved(told: Told) -> None:
    """80 outcomes after the error rose from 0.1 to 0.4, the error faded with 0.999 is 0.12 ± 0.03."""
    told.hears(alarm(outcome=10_080))
    told.found["m"] = Level(0.123, 0.03, 1_999.0, 10_090)
    assert told.reviews() == []


def test_a_fall_of_the_error_is_over_when_it_has_risen_back(told: Told) -> None:
    (firing,) = told.hears(alarm(before=0.4, after=0.1))
    assert not is_back(firing.parts[0], Level(0.1, 0.03, 2_000, 9_000))
    assert is_back(firing.parts[0], Level(0.38, 0.03, 2_000, 9_000))


def test_an_alarm_without_a_level_before_it_ends_by_its_time_only(told: Told) -> None:
    (firing,) = told.hears(alarm(before=float("nan")))
    assert not is_back(firing.parts[0], Level(0.0, 1.0, 2_000, 9_000))
    assert not is_back(firing.parts[0], None)


def test_an_error_that_never_comes_back_is_the_new_level_after_a_while(told: Told) -> None:
    told.hears(alarm())
    told.found["m"] = Level(0.4, 0.03, 2_000, 90_000)
    assert told.reviews(NOW_MS + 24 * HOUR_MS - 1) == []
    assert not told.book.due(NOW_MS + 24 * HOUR_MS - 1, behind=False)
    assert told.book.due(NOW_MS + 24 * HOUR_MS, behind=False), "though nothing is read any more"
    told.hears(alarm("n"), now_ms=NOW_MS + 24 * HOUR_MS - 1)
    (notification,) = told.reviews(NOW_MS + 24 * HOUR_MS)
    assert (notification.kind, notification.parts[0].reason, notification.series) == (
        "resolved",
        "accepted_as_new_level",
        "m",
    )


def test_a_new_alarm_of_an_open_one_gives_it_more_time(told: Told) -> None:
    told.hears(alarm())
    told.hears(alarm(ordinal=2), now_ms=NOW_MS + 20 * HOUR_MS)
    assert told.reviews(NOW_MS + 25 * HOUR_MS) == []
    assert len(told.reviews(NOW_MS + 44 * HOUR_MS)) == 1


def test_a_retired_model_ends_its_alarms_and_is_forgotten(told: Told) -> None:
    empty = told.book.state()
    told.hears(alarm(), alarm(detector="adwin"))
    notifications = told.book.retire("m", NOW_MS)
    (notification,) = notifications
    assert notification.kind == "resolved"
    assert [p.reason for p in notification.parts] == ["model_retired"] * 2
    assert told.book.state() == empty
    assert told.book.retire("never seen", NOW_MS) == []


def test_levels_are_asked_for_once_for_all_open_models(told: Told) -> None:
    told.reviews()
    assert told.asked == [], "nothing is open"
    told.hears(alarm("b"), alarm("a"), alarm("a", "adwin"))
    told.reviews()
    assert told.asked == [["a", "b"]]


def test_old_alarms_of_a_backlog_leave_as_one_digest_when_it_has_been_read(told: Told) -> None:
    for i in range(300):
        old = alarm(f"m{i % 3}", ordinal=i, event_ms=NOW_MS - 72 * HOUR_MS + i)
        assert told.hears(old, behind=True) == []
        assert told.reviews(behind=True) == []
    (fresh,) = told.hears(alarm("m0", event_ms=NOW_MS - HOUR_MS), behind=True)
    assert fresh.kind == "firing", "what is not old is told at once"
    (notification,) = told.reviews()
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
    assert told.reviews() == [], "once"
    assert told.counted("alarms_digested_total") == {(): 300.0}


def test_a_backlog_that_takes_long_is_told_of_in_between(told: Told) -> None:
    told.hears(alarm(event_ms=0), behind=True)
    assert told.reviews(NOW_MS + 599_999, behind=True) == []
    assert not told.book.due(NOW_MS + 599_999, behind=True)
    assert told.book.due(NOW_MS + 600_000, behind=True)
    assert told.book.due(NOW_MS, behind=False)
    (first,) = told.reviews(NOW_MS + 600_000, behind=True)
    state = told.book.state()
    told = Told()
    told.book.restore(state)
    told.hears(alarm(event_ms=1), now_ms=NOW_MS + 600_001, behind=True)
    (second,) = told.reviews(NOW_MS + 600_002)
    assert first.id != second.id


def test_an_old_event_time_is_no_digest_when_nothing_is_behind(told: Told) -> None:
    """Labels may carry times of their own from long ago."""
    assert [n.kind for n in told.hears(alarm(event_ms=0))] == ["firing"]


def test_a_digest_is_as_severe_as_the_worst_in_it() -> None:
    told = Told(AlarmsSpec((AlarmRule("*", "b", "critical", 0, 0),), RULE))
    told.hears(*(alarm(m, event_ms=0) for m in "abc"), behind=True)
    (notification,) = told.reviews()
    assert notification.severity == "critical"


def test_state_of_another_version_is_refused(told: Told) -> None:
    state = msgspec.msgpack.decode(told.book.state())
    with pytest.raises(ValueError, match="alarm book must be of version 2, got 3"):
        told.book.restore(msgspec.msgpack.encode({**state, "version": 3}))


def test_notifications_come_back_from_their_bytes_with_undefined_numbers() -> None:
    notification = Told().hears(alarm(before=float("nan"), after=float("inf")))[0]
    assert str(decode(encode(notification))) == str(notification)
    with pytest.raises(ValueError, match="Expected"):
        decode(b"not a notification")


def test_levels_follow_from_totals_and_leave_out_models_without_outcomes() -> None:
    n = np.array([2_000.0, 0.0])
    zeros = np.zeros((2, 2))
    totals = Totals(n, np.array([1_500.0, 0.0]), n, n, n, zeros, zeros, zeros)
    levels = levels_of(["a", "b"], totals, np.array([9_000, 0]), 0.05)
    assert list(levels) == ["a"]
    assert levels["a"].error == pytest.approx(0.25)
    assert levels["a"].bound == pytest.approx(np.sqrt(np.log(2 / 0.05) / 4_000))
    assert (levels["a"].n_eff, levels["a"].outcomes) == (2_000.0, 9_000)


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
        st.builds(Level, st.floats(0, 1), st.floats(0, 1), st.floats(1, 3_000), st.integers(50, 9_000)),
    ),
    st.integers(0, 12 * HOUR_MS),
    st.booleans(),
    st.sampled_from([None, None, None, "a", "b"]),
    st.booleans(),
)


@given(st.lists(STEP, max_size=12))
@settings(max_examples=examples(1.5))
def test_a_restart_at_any_point_repeats_nothing_and_loses_nothing(steps: list[tuple[object, ...]]) -> None:
    lasting, restarted = Told(), Told()
    now_ms = NOW_MS
    for alarms, levels, passed_ms, behind, retired, restart in steps:
        now_ms += passed_ms  # type: ignore[operator]
        said = []
        for told in (lasting, restarted):
            told.found = levels  # type: ignore[assignment]
            notifications = told.hears(*alarms, now_ms=now_ms, behind=behind)  # type: ignore[arg-type, misc]
            notifications += told.book.retire(retired, now_ms) if retired else []  # type: ignore[arg-type]
            said.append(notifications + told.reviews(now_ms, behind=bool(behind)))
        assert said[0] == said[1]
        assert lasting.book.open_incidents() == restarted.book.open_incidents()
        assert lasting.book.state() == restarted.book.state()
        if restart:
            state = restarted.book.state()
            restarted = Told()
            restarted.book.restore(state)
            assert restarted.book.state() == state
            assert restarted.book.families() == lasting.book.families()


def judged(verdict: int, ordinal: int = 1, since: int = 900, model: str = "m") -> Alarm:
    judgement = Judgement("persistent", verdict, since, NOW_MS - 9_000)  # type: ignore[arg-type]
    made = alarm(model, "verdict", ordinal, before=0.0, after=float(verdict))
    return msgspec.structs.replace(made, judgement=judgement)


def test_a_model_that_becomes_worse_is_announced_until_it_is_so_no_longer(told: Told) -> None:
    (fires,) = told.hears(judged(-1))
    assert (fires.kind, fires.started_at_ms) == ("firing", NOW_MS - 9_000)
    (ends,) = told.hears(judged(1, ordinal=2, since=4_000))
    (part,) = ends.parts
    assert (ends.kind, part.reason, ends.incident) == ("resolved", "verdict_changed", fires.incident)
    assert part.alarm == judged(1, ordinal=2, since=4_000)
    assert told.book.open_incidents() == []


@pytest.mark.parametrize("verdict", [0, 1])
def test_a_verdict_that_is_not_worse_announces_nothing(told: Told, verdict: int) -> None:
    assert told.hears(judged(verdict)) == []
    assert sum(told.counted("alarms_suppressed_total").values()) == 0


def test_neither_time_nor_the_level_of_the_error_ends_a_verdict(told: Told) -> None:
    told.found["m"] = Level(0.0, 0.5, 10.0, 100_000)
    told.hears(judged(-1))
    late = NOW_MS + 10 * SPEC.resolve_timeout_ms
    assert told.reviews(late) == []
    assert not told.book.due(late, behind=False)
    (ends,) = told.book.retire("m", late)
    assert ends.parts[0].reason == "model_retired"


def test_a_verdict_survives_a_restart(told: Told) -> None:
    (fires,) = told.hears(judged(-1))
    again = Told()
    again.book.restore(told.book.state())
    assert again.book.open_incidents() == [fires]
    (ends,) = again.hears(judged(0, ordinal=2))
    assert ends.incident == fires.incident


def test_a_verdict_on_a_model_that_accuracy_misjudges_is_information_unless_a_severity_was_chosen():
    def judged(model: str) -> Alarm:
        made = alarm(model, "verdict", before=0.0, after=-1.0)
        return msgspec.structs.replace(made, judgement=Judgement("persistent", -1, 900, NOW_MS))

    chosen = AlarmRule(model="chosen", severity="critical", severity_given=True)
    told = Told(AlarmsSpec(rules=(chosen,), otherwise=RULE), misled={"fraud", "chosen"})
    heard = told.hears(judged("fraud"), judged("chosen"), judged("plain"))
    severities = {n.model: n.severity for n in heard}
    assert severities == {"fraud": "info", "chosen": "critical", "plain": "warning"}
    assert {n.model for n in heard if n.parts[0].accuracy_misleads} == {"fraud", "chosen"}
    (drift,) = told.hears(alarm("fraud", "adwin", outcome=9_000))
    assert drift.severity == "warning", "a change of its error is one whatever the classes are"
