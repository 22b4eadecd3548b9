"""Verdicts of comparisons by cohorts: those of the plain rule, whatever the order, cuts and restores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import CONFIRMED, EARLY, OPEN
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import ComparisonSpec, FadingSpec, MonitorsSpec, UtilitySpec
from tests.core.estimators.registers.cohorts.costs import COSTS, utility_of
from tests.core.estimators.registers.cohorts.drawn import STREAMS, drawn
from tests.core.estimators.registers.cohorts.naive_cohorts import OWN_CLASSES, Kind, NaiveCohorts, kind_of

STATUS = {"": OPEN, "early": EARLY, "confirmed": CONFIRMED, "complete": CONFIRMED}
START = (100.0, 100.0)


def spec_of(horizon_ms: int, *utilities: UtilitySpec) -> MonitorsSpec:
    cohorts = CohortsSpec(horizon_ms, outcomes=1_000, utilities=utilities or (UtilitySpec(),))
    return MonitorsSpec(
        forgetting=(FadingSpec(0.9),),
        comparisons=(ComparisonSpec("old", ("new",)),),
        utilities=cohorts.utilities,
        registers=(cohorts,),
    )


def early_start(comparisons: ComparisonSet) -> ComparisonSet:
    """Let evidence begin early, as in the streams that are drawn."""
    parameters = comparisons._cohorts._register.parameters  # pyright: ignore[reportPrivateUsage]
    parameters["least_predictions"], parameters["predictions_by_dispersion"] = START
    return comparisons


def pairs_of(name: str) -> tuple[int, list[Outcome]]:
    """Pairs of a drawn stream: the champion answers as the stream's last known label, or else rightly.

    The champion is resolved later every third time, and makes more predictions than the challenger.
    """
    horizon_ms, outcomes = drawn(name)
    found = []
    for n, (at, delay, made, label, predicted, last) in enumerate(
        zip(*(column.tolist() for column in outcomes), strict=True)
    ):
        champion = str(last if last >= 0 else label)
        of_champion = (3 * made + 2**32 - 50) % 2**32
        times = {"event_ms": at, "delay_ms": delay, "resolved_ms": at, "waited_ms": delay}
        if n % 3:
            pair = PairedAnswer("old", champion, of_champion)
            own = Outcome("new", str(label), str(predicted), **times, pairs=(pair,), made=made % 2**32)
        else:
            pair = PairedAnswer("new", str(predicted), made % 2**32)
            own = Outcome("old", str(label), champion, **times, pairs=(pair,), made=of_champion)
        found.append(own)
    return horizon_ms, found


class NaivePairs(NaiveCohorts):
    """The plain rule for one opponent, learning delays from pairs with a lead.

    The kind of a pair is its sign, with its class or, by costs, with the class and whether one of the models
    is right; kinds are numbered as they appear.
    """

    def __init__(self, horizon_ms: int, utility: Callable[[object, object], float] | None = None) -> None:
        super().__init__(horizon_ms, predictions=1_000, start=START)
        del self.opponents["majority"]
        self.apart = OWN_CLASSES
        self.of_pairs = utility
        self.kinds: dict[object, int] = {}
        self.lead = 0.0
        self.with_lead = self.outcomes
        self.everything: list[tuple[int, int, Kind, dict[str, float]]] = []

    def take_pair(self, at: int, delay: int, made: int, label: str, challenger: str, champion: str) -> None:
        kind: object = label
        if self.of_pairs is None:
            self.lead = float(challenger == label) - float(champion == label)
        else:
            self.lead = self.of_pairs(label, challenger) - self.of_pairs(label, champion)
            kind = label, challenger != champion and label not in (challenger, champion)
        number = self.kinds.setdefault(kind, len(self.kinds))
        is_hit = self.lead > 0 if self.of_pairs else challenger == label
        self.take(at, delay, made, number, number if is_hit else -1, None)

    def _confirm(self, at: int) -> None:
        self.outcomes = self.everything
        super()._confirm(at)
        self.outcomes = self.with_lead

    def _count(self, predicted_at, delay, label, predicted, last_known) -> None:
        del last_known
        found = kind_of(label, predicted), {"no_change": self.lead}
        for tracker in self.trackers:
            tracker.count(predicted_at, delay)
        self.everything.append((predicted_at, delay, *found))
        if self.lead:
            self._note(predicted_at, delay, *found)
        for cohort in [*self.closed, *([self.current] if self.current else [])]:
            inside = cohort.opened <= predicted_at and (cohort.end is None or predicted_at < cohort.end)
            if inside and delay <= self.ages[cohort.parameters.age]:
                cohort.leads.append(found)

    def _claim(self, name, opponent, cohort) -> None:
        # With one opponent, worse needs the evidence of better: half of what the rule for two asks.
        opponent.worse.m = [2 * m for m in opponent.worse.m]
        super()._claim(name, opponent, cohort)
        opponent.worse.m = [m / 2 for m in opponent.worse.m]


TWO_COSTS = UtilitySpec("*", "costs", (("0", "1", 1.0), ("1", "0", 0.8)), other=0.0)
"""Costs by which a claim on the stream that slows is retracted."""
UTILITIES = {"accuracy": None, "costs": COSTS, "two costs": TWO_COSTS}


@pytest.mark.slow
@pytest.mark.parametrize("utility", UTILITIES.values(), ids=UTILITIES)
@pytest.mark.parametrize("name", STREAMS)
def test_every_pair_leaves_what_the_plain_rule_says(name, utility) -> None:
    horizon_ms, pairs = pairs_of(name)
    naive = NaivePairs(horizon_ms, utility and utility_of(utility))
    comparisons = early_start(ComparisonSet(spec_of(horizon_ms, *([utility] if utility else []))))
    made = 0
    changes = 0
    waiting = []
    for number, pair in enumerate(pairs):
        (partner,) = pair.pairs or ()
        answers = {pair.model: pair.predicted_class, partner.model: partner.predicted_class}
        of_challenger = pair.made if pair.model == "new" else partner.made
        made = of_challenger if made == 0 or 0 < (of_challenger - made) % 2**32 < 2**31 else made
        naive.take_pair(
            pair.resolved_ms, pair.waited_ms, made, pair.true_class, answers["new"], answers["old"]
        )
        waiting.append(pair)
        opponent = naive.opponents["no_change"]
        if opponent.changes != changes or number % 16 == 0:
            comparisons.fold(waiting)  # only here is it looked at, and cuts change no bit: see below
            waiting = []
            changes = opponent.changes
            families = {f.name: list(f.samples) for f in comparisons.families()}
            samples = families["comparison_cohort_verdict"]
            assert [value for _, value in samples] == ([opponent.verdict] if opponent.started else [])
            held = families["comparison_cohort_verdict_confirmed"]
            assert [value for _, value in held] == (
                [] if opponent.verdict == 0 else [float(STATUS[opponent.status] == CONFIRMED)]
            )
            earliest, latest = opponent.between or (None, None)
            for limit, of_plain in (("earliest", earliest), ("latest", latest)):
                limits = families[f"comparison_cohort_verdict_{limit}_timestamp_seconds"]
                assert [value for _, value in limits] == ([] if not of_plain else [of_plain / 1000.0])
            retracted = families["comparison_cohort_verdict_retracted_total"]
            assert [value for _, value in retracted] == [opponent.retracted]
            for _, value in families["comparison_cohort_lead_dispersion"]:
                assert value == pytest.approx(opponent.phi, rel=1e-9)
    assert naive.judged > 5


@pytest.mark.slow
@pytest.mark.parametrize("utility", [UtilitySpec(), TWO_COSTS], ids=["accuracy", "costs"])
def test_streams_have_verdicts_that_are_confirmed_and_retracted(utility) -> None:
    changes, retracted, confirmed = 0.0, 0.0, 0.0
    for name in STREAMS:
        horizon_ms, pairs = pairs_of(name)
        comparisons = early_start(ComparisonSet(spec_of(horizon_ms, utility)))
        for start in range(0, len(pairs), 100):
            comparisons.fold(pairs[start : start + 100])
            values = {f.name: [value for _, value in f.samples] for f in comparisons.families()}
            changes += sum(map(abs, values["comparison_cohort_verdict"]))
            confirmed += sum(values["comparison_cohort_verdict_confirmed"])
        retracted += sum(values["comparison_cohort_verdict_retracted_total"])
    assert min(changes, confirmed, retracted) > 0


@pytest.mark.parametrize("utilities", [(), (COSTS,)], ids=["accuracy", "costs"])
def test_neither_cuts_nor_restores_change_a_bit(utilities) -> None:
    horizon_ms, pairs = pairs_of(next(iter(STREAMS)))
    spec = spec_of(horizon_ms, *utilities)
    whole = early_start(ComparisonSet(spec))
    whole.fold(pairs)
    cut = early_start(ComparisonSet(spec))
    chance = np.random.default_rng(1)
    start = 0
    while start < len(pairs):
        end = start + int(chance.integers(1, 400))
        cut.fold(pairs[start:end])
        snapshot = cut.snapshot()
        cut = early_start(ComparisonSet(spec))
        cut.restore(snapshot)
        assert cut.snapshot() == snapshot
        start = end
    assert cut.snapshot() == whole.snapshot()
    families = [[(f.name, list(f.samples)) for f in each.families()] for each in (cut, whole)]
    assert families[0] == families[1]


@pytest.mark.parametrize("utilities", [(), (COSTS,)], ids=["accuracy", "costs"])
def test_more_than_seven_classes_share_a_kind_also_after_a_restore(utilities) -> None:
    spec = spec_of(60_000, *utilities)
    one, other = ComparisonSet(spec), ComparisonSet(spec)
    chance = np.random.default_rng(2)
    for start in range(0, 4_000, 500):
        pairs = []
        for n in range(start, start + 500):
            label, wrong = (f"c{k}" for k in chance.choice(20, 2, replace=False))
            answers = (label, wrong) if chance.random() < 0.6 else (wrong, label)
            waited = int(chance.integers(0, 59_000))
            times = {"event_ms": 10 * n, "delay_ms": waited, "resolved_ms": 10 * n, "waited_ms": waited}
            partner = PairedAnswer("old", answers[1], n)
            pairs.append(Outcome("new", label, answers[0], **times, pairs=(partner,), made=n))
        one.fold(pairs)
        other.fold(pairs)
        snapshot = other.snapshot()
        other = ComparisonSet(spec)
        other.restore(snapshot)
    assert other.snapshot() == one.snapshot()


def test_there_are_none_where_models_have_none_or_are_judged_by_another_utility() -> None:
    horizon_ms, pairs = pairs_of(next(iter(STREAMS)))
    spec = spec_of(horizon_ms)
    for changed in (
        replace(spec, registers=()),
        spec_of(horizon_ms, UtilitySpec("old", "balanced")),
        replace(spec, registers=(replace(spec.registers[0], by_prediction=True),)),
    ):
        comparisons = ComparisonSet(changed)
        comparisons.fold(pairs[:2_000])
        values = {f.name: list(f.samples) for f in comparisons.families() if "cohort" in f.name}
        assert all(not samples for samples in values.values())
        assert bool(values) is bool(changed.registers)


def test_a_comparison_begins_anew_by_cohorts_with_another_utility() -> None:
    horizon_ms, pairs = pairs_of(next(iter(STREAMS)))
    specs = {
        "accuracy": spec_of(horizon_ms),
        "costs": spec_of(horizon_ms, COSTS),
        "others": spec_of(horizon_ms, replace(COSTS, other=5.0)),
    }
    for taken, before in specs.items():
        kept = ComparisonSet(before)
        kept.fold(pairs[:2_000])
        for now, spec in specs.items():
            again = ComparisonSet(spec)
            again.restore(kept.snapshot())
            cohorts = again._cohorts  # pyright: ignore[reportPrivateUsage]
            assert cohorts is not None
            assert (cohorts.snapshots([0]) != [{}]) == (taken == now)
            again.fold(pairs[2_000:])
            assert cohorts.are_judged(np.array([0])).all()


@pytest.mark.parametrize("utilities", [(), (COSTS,)], ids=["accuracy", "costs"])
def test_a_model_that_retires_takes_its_cohorts_along(utilities) -> None:
    horizon_ms, pairs = pairs_of(next(iter(STREAMS)))
    spec = spec_of(horizon_ms, *utilities)
    used, fresh = ComparisonSet(spec), ComparisonSet(spec)
    used.fold(pairs)
    used.retire("new")
    used.fold(pairs[:100])
    fresh.fold(pairs[:100])
    assert used.snapshot() == fresh.snapshot()


def test_a_snapshot_with_another_number_of_counts_or_kinds_is_refused() -> None:
    horizon_ms, pairs = pairs_of(next(iter(STREAMS)))
    kept, again = ComparisonSet(spec_of(horizon_ms)), ComparisonSet(spec_of(horizon_ms))
    kept.fold(pairs[:500])
    again.fold(pairs[:1])
    cohorts, other = kept._cohorts, again._cohorts  # pyright: ignore[reportPrivateUsage]
    assert cohorts is not None
    assert other is not None
    (snapshot,) = cohorts.snapshots([0])
    body, counted, kinds = msgspec.msgpack.decode(snapshot[cohorts.section])
    for damaged in ((body, b"", kinds), (body, counted * 2, kinds), (body, counted, [*"abcdefgh"])):
        with pytest.raises(ValueError, match="length"):
            other.restore(0, msgspec.msgpack.encode(damaged))
