"""Alarms of one change are one incident: one notification, updated, resolved when all its alarms are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.incidents import Incident
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.records.events import Alarm, Judgement
from tests.tiers import examples

NOW_MS = 1_700_000_000_000
REACH = 2_000
SPEC = AlarmsSpec(
    (AlarmRule("verdict", severity="critical", cooldown_ms=0, min_outcomes=0),),
    AlarmRule(cooldown_ms=0, min_outcomes=0),
    incident_outcomes=REACH,
)


def alarm(detector: str = "page_hinkley", outcome: int = 10_000, model: str = "m") -> Alarm:
    return Alarm(model, detector, 1, outcome, NOW_MS + outcome, NOW_MS + outcome, 51.0, 50.0, 0.1, 0.4, 900.0)


def verdict(since: int, outcome: int, judged: int = -1) -> Alarm:
    judgement = Judgement("persistent", judged, since, NOW_MS + since)  # type: ignore[arg-type]
    return msgspec.structs.replace(alarm("verdict", outcome), judgement=judgement)


@dataclass
class WatchedBook:
    """A book that is given alarms, each in a batch of its own."""

    book: AlarmBook = field(default_factory=lambda: AlarmBook(SPEC, "state"))

    def hears(self, *alarms: Alarm) -> list[Notification]:
        return self.book.announce(alarms, NOW_MS, self, behind=False)

    def recovers(self) -> list[Notification]:
        return self.book.review(self, NOW_MS, behind=False)

    def first_ms(self, model: str) -> int:
        return len(model)

    def levels(self, models: Sequence[str]) -> dict[str, Level]:
        return dict.fromkeys(models, Level(0.1, 0.03, 2_000.0, 100_000))

    def headlines(self, models: Sequence[str]) -> dict[str, int]:
        del models
        return {}

    def accuracy_misleads(self, model: str) -> bool:
        del model
        return False

    def confirmation_expected_ms(self, model: str, at_ms: int) -> None:
        del model, at_ms

    def confirmation(self, model: str, at_ms: int, rise: float) -> None:
        del model, at_ms, rise

    def false_alarms_monthly(self, alarm: Alarm) -> None:
        del alarm

    def delays_moved(self, model: str) -> tuple[()]:
        del model
        return ()

    def class_shift(self, model: str, level: float) -> None:
        del model, level

    def segment_change(self, model: str) -> None:
        del model


def news_of(notifications: list[Notification]) -> list[tuple[str, tuple[str, ...]]]:
    return [(n.kind, n.news) for n in notifications]


def test_detectors_and_the_verdict_on_one_change_are_one_incident_that_is_updated() -> None:
    watched = WatchedBook()
    notifications = [
        *watched.hears(alarm("adwin", 10_128)),
        *watched.hears(alarm("page_hinkley", 10_325)),
        *watched.hears(verdict(since=10_232, outcome=12_209)),
    ]
    assert news_of(notifications) == [
        ("firing", ("adwin",)),
        ("updated", ("page_hinkley",)),
        ("updated", ("verdict",)),
    ]
    assert len({n.incident for n in notifications}) == 1
    assert len({n.id for n in notifications}) == 3
    assert notifications[-1].detectors == ("adwin", "page_hinkley", "verdict")
    assert notifications[-1].started_at_ms == NOW_MS + 10_128
    assert [n.severity for n in notifications] == ["warning", "warning", "critical"]


def test_what_one_batch_brings_is_one_notification() -> None:
    watched = WatchedBook()
    assert news_of(watched.hears(alarm("adwin"), alarm(), alarm("adwin", 10_050))) == [
        ("firing", ("adwin", "page_hinkley"))
    ]
    assert news_of(watched.recovers()) == [("resolved", ("adwin", "page_hinkley"))]


def test_an_incident_is_resolved_when_all_its_alarms_are() -> None:
    watched = WatchedBook()
    watched.hears(alarm(), verdict(since=9_900, outcome=12_000))
    (over,) = watched.recovers()
    assert (over.kind, over.news) == ("updated", ("page_hinkley",))
    assert [part.reason for part in over.parts] == ["back_to_level", None]
    assert over.ended_at_ms is None
    (ends,) = watched.hears(verdict(since=30_000, outcome=31_000, judged=1))
    assert (ends.kind, ends.news, ends.incident) == ("resolved", ("verdict",), over.incident)
    assert ends.ended_at_ms is not None
    assert watched.book.open_incidents() == []


def test_that_an_alarm_began_is_notified_before_that_it_ended() -> None:
    watched = WatchedBook()
    heard = watched.hears(verdict(9_900, 12_000), verdict(20_000, 21_000, judged=0), alarm(outcome=22_500))
    assert news_of(heard) == [
        ("firing", ("verdict",)),
        ("resolved", ("verdict",)),
        ("firing", ("page_hinkley",)),
    ]
    assert heard[0].incident == heard[1].incident != heard[2].incident


def test_a_verdict_that_turns_twice_at_once_is_notified_thrice() -> None:
    watched = WatchedBook()
    watched.hears(alarm(outcome=9_900))
    heard = watched.hears(verdict(9_900, 12_000), verdict(20_000, 21_000, judged=0), verdict(10_500, 22_000))
    assert news_of(heard) == [("updated", ("verdict",))] * 3
    assert [n.parts[1].is_open for n in heard] == [True, False, True]


@pytest.mark.parametrize(
    ("second", "incidents"),
    [
        (alarm("adwin", 12_000), 1),
        (alarm("adwin", 12_001), 2),
        (verdict(since=8_000, outcome=40_000), 1),
        (verdict(since=7_999, outcome=10_000), 2),
        (verdict(since=11_000, outcome=90_000), 1),
        (alarm("adwin", 10_000, "other"), 2),
    ],
    ids=["within reach", "beyond it", "since within", "since before", "late but since within", "elsewhere"],
)
def test_an_alarm_belongs_to_an_incident_by_the_outcomes_between_them(second: Alarm, incidents: int) -> None:
    watched = WatchedBook()
    notifications = [*watched.hears(alarm()), *watched.hears(second)]
    assert len({n.incident for n in notifications}) == incidents


def test_an_incident_grows_with_its_alarms_and_the_nearest_one_takes_an_alarm() -> None:
    watched = WatchedBook()
    (far,) = watched.hears(alarm(outcome=10_000))
    (near,) = watched.hears(verdict(since=13_000, outcome=30_000))
    assert far.incident != near.incident
    watched.hears(alarm(outcome=10_900))  # of a detector whose alarm is open: it widens the span
    (joined,) = watched.hears(alarm("adwin", 11_900))
    assert joined.incident == far.incident
    assert watched.hears(alarm("ddm", 12_600))[0].incident == near.incident


def test_a_detector_that_begins_again_in_an_open_incident_has_one_part() -> None:
    watched = WatchedBook()
    watched.hears(alarm(), verdict(since=9_900, outcome=12_000))
    watched.recovers()
    (again,) = watched.hears(alarm(outcome=11_500))
    assert (again.kind, again.news) == ("updated", ("page_hinkley",))
    assert again.detectors == ("verdict", "page_hinkley")


def test_an_incident_that_ended_is_not_begun_again() -> None:
    watched = WatchedBook()
    (first,) = watched.hears(alarm())
    watched.recovers()
    (second,) = watched.hears(alarm("adwin", 10_100))
    assert second.kind == "firing"
    assert second.incident != first.incident


def test_open_incidents_are_their_last_notification_with_alarms_as_they_are_now() -> None:
    watched = WatchedBook()
    watched.hears(alarm())
    (last,) = watched.hears(alarm("adwin"))
    watched.hears(alarm(outcome=10_500))
    (known,) = watched.book.open_incidents()
    assert (known.id, known.kind) == (last.id, "updated")
    assert [part.alarm.outcome for part in known.parts] == [10_500, 10_000]
    assert [part.alarms for part in known.parts] == [2, 1]


STEPS = st.lists(
    st.one_of(
        st.builds(
            alarm,
            st.sampled_from(["adwin", "ddm", "page_hinkley"]),
            st.integers(0, 20_000),
            st.sampled_from("ab"),
        ),
        st.sampled_from(["recover", "restart"]),
    ),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=examples(2.0))
def test_alarms_are_grouped_as_a_plain_list_of_incidents_groups_them(steps: list[Alarm | str]) -> None:
    watched = WatchedBook()
    plain: list[tuple[str, str, set[str], list[int]]] = []  # id, model, open detectors, positions
    for step in steps:
        if step == "restart":
            state, watched = watched.book.state(), WatchedBook()
            watched.book.restore(state)
            assert watched.book.state() == state
        elif step == "recover":
            assert {n.incident for n in watched.recovers()} == {name for name, *_ in plain}
            plain = []
        elif isinstance(step, Alarm):
            mine = [each for each in plain if each[1] == step.model]
            heard = watched.hears(step)
            if (open_in := [each for each in mine if step.detector in each[2]]) != []:
                assert heard == []
                open_in[0][3].append(step.outcome)
                continue
            (n,) = heard
            gaps = [
                (max(0, step.outcome - max(each[3]), min(each[3]) - step.outcome), -max(each[3]), each[0])
                for each in mine
            ]
            if gaps and min(gaps)[0] <= REACH:
                assert (n.kind, n.incident) == ("updated", min(gaps)[2])
                taken = next(each for each in mine if each[0] == n.incident)
                taken[2].add(step.detector)
                taken[3].append(step.outcome)
            else:
                assert n.kind == "firing"
                plain.append((n.incident, step.model, {step.detector}, [step.outcome]))
        assert sorted(n.incident for n in watched.book.open_incidents()) == sorted(name for name, *_ in plain)


@pytest.mark.parametrize(("position", "outcomes"), [(5, 5), (10, 0), (15, 0), (20, 0), (23, 3)])
def test_the_distance_of_an_alarm_is_counted_from_the_span_and_none_is_inside_it(
    position: int, outcomes: int
) -> None:
    assert Incident("i", 10, 20).distance(position) == outcomes
