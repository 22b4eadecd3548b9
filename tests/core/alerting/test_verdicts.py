"""Verdicts as alarms: announced while a model is worse, and ended by nothing but a verdict."""

from __future__ import annotations

import msgspec
import pytest

from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.events import Alarm, Judgement
from tests.core.alerting.told import NOW_MS, RULE, SPEC, Told, alarm


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
