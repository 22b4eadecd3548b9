"""The headline by cohorts is the worse of the two plain verdicts, and every change of it is reported once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from streamwatch.core.estimators.names import Classes, Slice
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.life import (
    append_headline_change,
    headline_of,
    read_headlines,
    retractions_of,
)
from streamwatch.core.estimators.registers.cohorts.register import parameters_of
from streamwatch.core.estimators.registers.cohorts.state import (
    CHANGE,
    CLAIMED,
    CONFIRMED,
    CONFIRMS,
    EARLY,
    EXPIRED,
    HEADLINE,
    HEADLINES,
    MODEL,
    NO_CHANGE,
    OPEN,
)
from streamwatch.core.estimators.registers.cohorts.trackers import NEVER
from streamwatch.core.specs import UtilitySpec
from tests.core.estimators.registers.cohorts.drawn import STREAMS, drawn
from tests.core.estimators.registers.cohorts.naive_cohorts import NaiveCohorts, Opponent
from tests.core.estimators.registers.cohorts.observed import batch_of, part, register_of
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of
from tests.mutants.interpreted import call
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


def begins(opponents: Mapping[str, Opponent], judged_predictions: float, verdict: int) -> bool:
    """Whether evidence is kept against an opponent, and it sufficed, or twice the predictions are judged."""
    least, by_dispersion = START
    return any(
        opponent.started
        and (verdict != 0 or judged_predictions >= 2 * max(least, by_dispersion * opponent.phi))
        for opponent in opponents.values()
    )


def plain_headline(opponents: Mapping[str, Opponent]) -> Headline:
    """Worse than either, better than both, or open."""
    opponents = {NAMES[name]: opponent for name, opponent in opponents.items()}
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
        now = plain_headline(naive.opponents)
        found = register.headline_changes()
        if (before is None and not begins(naive.opponents, naive.judged_predictions, now.verdict)) or (
            before and now[:3] == before[:3]
        ):
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


def test_there_is_no_headline_while_no_change_has_no_answer() -> None:
    """As in a recording of outcomes; else *open* would take back the verdict in the order of labels."""
    outcomes = outcomes_of(Stream(accuracy=(0.9, 0.9), majority=0.6, predictions=9_000), 1)
    unknown = outcomes._replace(last=np.full_like(outcomes.last, -1))
    for last_label_known, given in ((True, outcomes), (False, unknown)):
        register = register_of(CohortsSpec(Stream().horizon_ms, outcomes=1_000), start=START)
        register.observe(batch_of(given))
        assert (register.headline_verdicts([0]) != [None]) == last_label_known
        assert (register.headline_changes() != []) == last_label_known


def test_a_model_that_is_no_change_itself_is_worse_than_the_majority() -> None:
    """Its every lead on no change is 0, which has answers to all predictions."""
    outcomes = outcomes_of(Stream(majority=0.8, predictions=20_000), 1)
    outcomes = outcomes._replace(predicted=np.where(outcomes.last >= 0, outcomes.last, 0))
    register = register_of(CohortsSpec(Stream().horizon_ms, outcomes=1_000), start=START)
    register.observe(batch_of(outcomes))
    assert register.taken_in([0]).models[0]["opponents"]["squares"][NO_CHANGE] == 0.0
    assert register.headline_verdicts([0]) == [-1]


def test_changes_are_told_as_they_are_written() -> None:
    told, written = (register_of(CohortsSpec(Stream().horizon_ms, outcomes=1_000), 2, START) for _ in "ab")
    batch = batch_of(outcomes_of(Stream(accuracy=(0.3, 0.9), majority=0.4, predictions=9_000), 1), 1)
    told.observe(batch)
    changes = written.changes_in(batch)
    changes = changes[changes["kind"] == HEADLINE]
    assert set(changes["after"].tolist()) == {-1, 0, 1}
    found = told.headline_changes()
    assert len(found) == len(changes)
    for change, record in zip(found, changes, strict=True):
        whole = change._asdict()
        names = {"number": "ordinal", "verdict": "after"}
        for name in ("position", "row", "number", "is_first", "before", "verdict", "since_ms", "outcomes"):
            assert whole[name] == record[names.get(name, name)], name
        for name in ("evidence", "threshold", "predictions"):
            assert whole[name] == record[name], name
        for name in ("earliest_ms", "latest_ms"):
            assert (whole[name] or 0) == record[name], name
        assert change.opponent == tuple(NAMES.values())[record["opponent"]]
        word = {status: word for word, status in STATUS.items()}[int(record["status"])]
        assert change.status == ("retracted" if record["is_retracted"] else word)
    assert any(change.latest_ms for change in found)
    told.observe(part(batch, slice(0, 0)))
    assert told.headline_changes() == []


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
        ((0, 0, 10), (1, 2, 20), (0, "", "", 0)),
        ((1, 1, 30), (1, 2, 20), (1, "better", "early", 30)),
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


@pytest.mark.parametrize(
    ("verdict", "status", "expected"), [(1, EARLY, 10), (-1, CONFIRMED, 10), (0, OPEN, 0)]
)
def test_with_one_opponent_it_is_the_verdict_against_that(verdict: int, status: int, expected: int) -> None:
    models, found = np.zeros(1, MODEL), np.zeros(1, HEADLINES)
    for each, values in ((0, (verdict, status, 10)), (1, (-1, 1, 5))):
        opponent = models["opponents"][0, each]
        opponent["verdict"], opponent["status"], opponent["since_ms"] = values
    read_headlines(models, parameters_of(CohortsSpec(of_pairs=True)), np.zeros(1, np.int64), found)
    names = ["verdict", "opponent", "status", "since_ms"]
    assert found[names].tolist() == [(verdict, NO_CHANGE, status, expected)]


STATUS = {"": OPEN, "early": EARLY, "confirmed": CONFIRMED}
DELTA, LEAST_N, BEGINS_MS = 0.05, 1_000, 5_000


def drawn_opponent(chance: Random, before: Opponent | None = None) -> Opponent:
    """Verdict against an opponent, which may be retracted if it was `before`."""
    verdict = chance.choice([-1, 0, 1])
    since = BEGINS_MS + 1_000 * chance.randrange(-1, 9)
    return Opponent(
        started=chance.random() < 0.7,
        phi=chance.choice([1.0, 1.5]),
        verdict=verdict,
        since=since,
        between=(chance.choice([None, since - 500]), since + 500) if verdict else None,
        status=chance.choice(["early", "confirmed"]) if verdict else "",
        retracted=0 if before is None else before.retracted + chance.randrange(2),
    )


def write_opponents(model: np.void, opponents: Mapping[str, Opponent]) -> None:
    """Write verdicts to a model's record."""
    for record, each in zip(model["opponents"], opponents.values(), strict=True):
        earliest_ms, latest_ms = each.between or (None, 0)
        record["started"], record["dispersion"], record["verdict"] = each.started, each.phi, each.verdict
        record["since_ms"], record["status"], record["retracted"] = (
            each.since,
            STATUS[each.status],
            each.retracted,
        )
        record["earliest_ms"], record["latest_ms"] = earliest_ms or 0, latest_ms


@dataclass
class Step:
    """What one outcome makes of a model's verdicts, and what is known of the model then."""

    earlier: dict[str, Opponent]
    later: dict[str, Opponent]
    judged: int
    """Number of predictions judged."""
    recent: float
    answered: list[list[int]]
    """Outcomes by stretch of a second and by opponent; the last stretch is open."""
    changes: list[tuple[int, int, int, float]]
    """Kind, opponent, verdict and evidence of what was noted: one at the outcome before, others at this."""
    answers: bool
    """Whether no change had an answer to an outcome."""

    @classmethod
    def drawn(cls, chance: Random) -> Step:
        earlier = {name: drawn_opponent(chance) for name in NAMES}
        later = {name: drawn_opponent(chance, each) for name, each in earlier.items()}
        verdicts = [each.verdict for each in later.values()]
        kinds = [(CLAIMED if verdict else EXPIRED, j, verdict) for j, verdict in enumerate(verdicts)]
        confirmed = (CONFIRMS, 1, verdicts[1])
        before = (CLAIMED, chance.randrange(2), chance.choice(verdicts))
        answers = chance.random() < 0.8
        return cls(
            earlier,
            later,
            chance.choice([199, 200, 299, 300]),
            chance.choice([999.0, 2_000.0]),
            [[chance.randrange(9) * answers, chance.randrange(9)] for _ in range(6)],
            [(*each, chance.uniform(1.0, 9.0)) for each in (before, *kinds, confirmed)],
            answers,
        )

    def write(self, model: np.void) -> None:
        """Write what is known after it to a model's record."""
        write_opponents(model, self.later)
        model["judged"], model["judged_predictions"] = 44, self.judged
        model["clock_ms"], model["recent"] = 90_000, self.recent
        model["bounds"], model["bounds_ms"] = len(self.answered), NEVER
        for k, each in enumerate(self.answered):
            model["bounds_ms"][k], model["stretches"][k]["outcomes"] = BEGINS_MS + 1_000 * k, each

    def noted(self) -> NDArray[np.void]:
        """The changes, with room for another."""
        found = np.frombuffer(bytearray(b"@" * (6 * CHANGE.itemsize)), CHANGE)
        for change, (kind, j, verdict, evidence) in zip(found, self.changes, strict=False):
            change["kind"], change["opponent"], change["after"] = kind, j, verdict
            change["evidence"], change["threshold"] = evidence, 100.0 * evidence
        return found

    def change(self, number: int) -> dict[str, float]:
        """The change that the headline makes, the one after so many."""
        then, now = plain_headline(self.earlier), plain_headline(self.later)
        least_ms, most_ms = now.between or (None, None)
        side = 2 if now.verdict > 0 else 4
        found = {
            "position": 7,
            "row": 2,
            "kind": HEADLINE,
            "ordinal": number + 1,
            "judged": 44,
            "before": then.verdict,
            "after": now.verdict,
            "status": STATUS[now.status],
            "since_ms": now.since if now.verdict else 90_000,
            "is_first": int(number == 0),
            "earliest_ms": least_ms or 0,
            "latest_ms": most_ms or 0,
            "predictions": self.judged,
            "evidence": 0.0,
            "threshold": side * max(LEAST_N, self.recent) / DELTA,
            "outcomes": 0,
        }
        claims = [(j, e) for kind, j, after, e in self.changes[1:] if (kind, after) == (CLAIMED, now.verdict)]
        if now.verdict < 0:
            found["opponent"] = list(NAMES.values()).index(now.opponent)
            claims = [each for each in claims if each[0] == found["opponent"]]
        if now.verdict not in {0, then.verdict}:
            found["evidence"], found["threshold"] = claims[-1][1], 100.0 * claims[-1][1]
        if now.verdict:
            first = max(min((now.since - BEGINS_MS) // 1_000, 5), 0)
            found["outcomes"] = sum(max(each) for each in self.answered[first:])
        ended = [name for name, label in NAMES.items() if then.verdict >= 0 or label == then.opponent]
        is_retracted = any(self.later[name].retracted > self.earlier[name].retracted for name in ended)
        found["is_retracted"] = int(then.verdict != 0 and now.verdict == 0 and is_retracted)
        return found


def test_a_change_is_written_with_all_that_is_known_of_it() -> None:
    """Of verdicts made up, before and after an outcome: also if it is claimed against both at once."""
    chance, seen = Random(1), set[tuple[bool, float, float, float]]()
    parameters = parameters_of(CohortsSpec(delta=DELTA, outcomes=LEAST_N))[0]
    parameters["least_predictions"], parameters["predictions_by_dispersion"] = START
    for _ in range(200):
        outcome, model, number = Step.drawn(chance), np.zeros(1, MODEL)[0], chance.choice([0, 0, 3])
        write_opponents(model, outcome.earlier)
        before, opponent, status, _ = call(headline_of, model, parameters)
        retractions = call(retractions_of, model, before, opponent)
        outcome.write(model)
        model["headlines"], changes, noted = number, outcome.noted(), len(outcome.changes)
        then = (before, opponent, status, retractions)
        count = call(append_headline_change, model, parameters, *then, 1, 7, 2, changes, noted)
        now = plain_headline(outcome.later)
        is_new = now[:3] != plain_headline(outcome.earlier)[:3]
        if number == 0:
            is_new = begins(outcome.later, outcome.judged, now.verdict)
            is_new = is_new and outcome.answers
        assert count - noted == model["headlines"] - number == is_new
        if is_new:
            expected = outcome.change(number)
            assert {name: changes[noted][name].item() for name in expected} == pytest.approx(expected)
            kept = ("before", "after", "is_retracted")
            seen.add((number == 0, *(expected[name] for name in kept)))
    assert len(seen) > 15


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
