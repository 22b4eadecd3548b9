"""The headline by cohorts is the worse of the two plain verdicts, and every change of it is reported once."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from streamwatch.core.estimators.names import Classes, Slice
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.headline import read_headlines
from streamwatch.core.estimators.registers.cohorts.register import parameters_of
from streamwatch.core.estimators.registers.cohorts.state import HEADLINES, MODEL
from streamwatch.core.specs import UtilitySpec
from tests.core.estimators.registers.cohorts.drawn import STREAMS, drawn
from tests.core.estimators.registers.cohorts.naive_cohorts import NaiveCohorts
from tests.core.estimators.registers.cohorts.observed import batch_of, part, register_of
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of
from tests.tiers import few

NAMES = {"no_change": "persistent_at_prediction", "majority": "majority"}
START = (100.0, 100.0)
PARAMETERS = parameters_of(CohortsSpec())


class Headline(NamedTuple):
    """What a headline says, by the plain rule."""

    verdict: int
    opponent: str
    """Empty unless the verdict is worse."""
    status: str
    since: int
    between: tuple[int | None, int | None] = (None, None)


def begins(naive: NaiveCohorts, verdict: int) -> bool:
    """Whether evidence is kept against an opponent, and it sufficed, or twice the predictions are judged."""
    least, by_dispersion = START
    return any(
        opponent.started
        and (verdict != 0 or naive.judged_predictions >= 2 * max(least, by_dispersion * opponent.phi))
        for opponent in naive.opponents.values()
    )


def plain_headline(naive: NaiveCohorts) -> Headline:
    """Worse than either, better than both, or open."""
    opponents = {NAMES[name]: opponent for name, opponent in naive.opponents.items()}
    status = {name: "early" if each.status == "early" else "confirmed" for name, each in opponents.items()}
    worse = [name for name in opponents if opponents[name].verdict < 0]
    if worse:
        order = list(opponents)
        first = min(worse, key=lambda n: (status[n] == "early", opponents[n].since, order.index(n)))
        return Headline(-1, first, status[first], opponents[first].since, opponents[first].between)
    if all(opponent.verdict > 0 for opponent in opponents.values()):
        both = "early" if "early" in status.values() else "confirmed"
        last = max(opponents.values(), key=lambda opponent: opponent.since)
        return Headline(1, "", both, last.since, last.between)
    return Headline(0, "", "", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", few(STREAMS, 3))
def test_every_change_of_the_plain_headline_is_reported_once_and_nothing_else(name: str) -> None:
    horizon_ms, outcomes = drawn(name)
    naive = NaiveCohorts(horizon_ms, predictions=1_000, start=START)
    register = register_of(CohortsSpec(horizon_ms, outcomes=1_000), start=START)
    batch = batch_of(outcomes)
    before: Headline | None = None
    reported = 0
    for i, (at, delay, made, label, answer, last) in enumerate(
        zip(*(column.tolist() for column in outcomes), strict=True)
    ):
        retracted = sum(opponent.retracted for opponent in naive.opponents.values())
        starts = list(naive.starts)
        naive.take(at, delay, made, label, answer, last if last >= 0 else None)
        retracted = sum(opponent.retracted for opponent in naive.opponents.values()) - retracted
        register.observe(part(batch, slice(i, i + 1)))
        now = plain_headline(naive)
        found = register.headline_changes()
        if (before is None and not begins(naive, now.verdict)) or (before and now[:3] == before[:3]):
            assert found == [], i
            continue
        (change,) = found
        reported += 1
        assert (change.number, change.is_first) == (reported, before is None), i
        assert (change.before, change.verdict) == (0 if before is None else before.verdict, now.verdict)
        status = "retracted" if retracted and now.verdict == 0 and before and before.verdict else now.status
        assert change.status == status, i
        if now.verdict < 0:
            assert change.opponent == now.opponent, i
        assert change.since_ms == (now.since if now.verdict else naive.clock), i
        assert (change.earliest_ms, change.latest_ms) == now.between, i
        # Outcomes are counted by stretches of prediction time, which are cohorts, or several older ones.
        begin = max(start for start in starts if start <= now.since) if now.verdict else naive.clock
        earlier = zip(outcomes.at[:i], outcomes.delay[:i], strict=True)
        since = sum(at - delay >= begin for at, delay in earlier if delay <= horizon_ms)
        assert change.outcomes == (since if now.verdict else 0), i
        before = now
    assert reported >= 1


def test_streams_have_early_confirmed_and_retracted_headlines() -> None:
    found: set[tuple[int, str]] = set()
    recovering = Stream(accuracy=(0.3, 0.9), majority=0.4, predictions=16_000)
    for horizon_ms, outcomes in (*map(drawn, STREAMS), (recovering.horizon_ms, outcomes_of(recovering, 1))):
        register = register_of(CohortsSpec(horizon_ms, outcomes=1_000), start=START)
        register.observe(batch_of(outcomes))
        found |= {(change.verdict, change.status) for change in register.headline_changes()}
    assert {(1, "early"), (1, "confirmed"), (-1, "early"), (-1, "confirmed"), (0, "retracted")} <= found


@pytest.mark.parametrize(
    ("no_change", "majority", "expected"),
    [
        # verdict, status (1 early, 2 confirmed), since: of either opponent, and of the headline
        ((1, 2, 10), (1, 1, 20), (1, "better", "early", 20)),
        ((1, 2, 10), (-1, 1, 20), (-1, "majority", "early", 20)),
        ((-1, 1, 10), (1, 2, 20), (-1, "persistent_at_prediction", "early", 10)),
        ((-1, 1, 10), (-1, 2, 20), (-1, "majority", "confirmed", 20)),
        ((-1, 2, 20), (-1, 2, 10), (-1, "majority", "confirmed", 10)),
        ((-1, 1, 10), (-1, 1, 10), (-1, "persistent_at_prediction", "early", 10)),
        ((1, 2, 10), (0, 0, 20), (0, "", "", 0)),
        ((0, 0, 10), (0, 0, 20), (0, "", "", 0)),
    ],
)
def test_it_is_worse_than_either_or_better_than_both(no_change, majority, expected) -> None:
    models, found = np.zeros(1, MODEL), np.zeros(1, HEADLINES)
    for opponent, (verdict, status, since) in zip(models["opponents"][0], (no_change, majority), strict=True):
        opponent["verdict"], opponent["status"], opponent["since_ms"] = verdict, status, since
    read_headlines(models, PARAMETERS, np.zeros(1, np.int64), found)
    assert not found["is_there"][0]
    models["headlines"] = 1
    read_headlines(models, PARAMETERS, np.zeros(1, np.int64), found)
    verdict, opponent, status, since = expected
    (headline,) = found
    assert (headline["is_there"], headline["verdict"], headline["since_ms"]) == (1, verdict, since)
    assert ("", "early", "confirmed")[headline["status"]] == status
    if verdict < 0:
        assert ("persistent_at_prediction", "majority")[headline["opponent"]] == opponent


def test_series_and_document_say_the_headline_of_models_judged_by_accuracy_or_costs() -> None:
    utilities = (
        UtilitySpec("*-costs", "costs", (("a", "b", 1.0),), other=0.0),
        UtilitySpec("*-fair", "balanced"),
    )
    spec = CohortsSpec(Stream().horizon_ms, outcomes=1_000, utilities=utilities)
    register = register_of(spec, 1, START)
    classes = Classes(12)
    models = ("m", "m-costs", "m-fair")
    assert register.series([Slice("m", 0, classes)])["cohort_headline"] == []
    assert register.headlines([0])(0) is None
    register.observe(batch_of(outcomes_of(Stream(), 1)))
    verdicts = register.taken_in([0]).models[0]["opponents"]["verdict"]
    worst = int(min(verdicts))
    samples = register.series([Slice(model, 0, classes) for model in models])["cohort_headline"]
    assert samples == [((model,), float(worst)) for model in ("m", "m-costs")]
    document = register.headlines([0])(0)
    assert document is not None
    assert (document["basis"], document["verdict"]) == (
        "cohorts",
        {1: "better", -1: "worse", 0: "open"}[worst],
    )
    assert [register.gives_headline(model) for model in (*models, "m\x1f3")] == [True, True, False, False]
    assert not replace(spec, by_prediction=True).gives_headline("m"), "the others are in that order, too"
