"""Estimates from sampled labels, against their definition prediction by prediction, and their invariances."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from streamwatch.core.predictions.kind import batch_of
from streamwatch.core.predictions.sampled_labels import SAMPLED_LABELS_BYTES, SampledLabelsSpec
from streamwatch.core.predictions.sampled_labels.observe import OPPONENTS, SAMPLED
from streamwatch.core.predictions.sampled_labels.register import SampledLabels
from streamwatch.core.records.events import Outcome, Prediction, as_float32, fold_name
from tests.core.predictions.sampled_labels.plain_sampled import Plain
from tests.tiers import by_tier, few

HORIZON_MS = 32_000
SPEC = SampledLabelsSpec(HORIZON_MS)


@dataclass(frozen=True)
class Kind:
    """Kind of stream: which labels are asked for, how they come, and what predictions say."""

    probabilities: tuple[float, ...]
    scored: float = 0.0
    stated: bool = False
    delay_ms: int = 20_000
    lost: float = 0.0
    without: float = 0.0
    unasked: float = 0.0


KINDS = {
    "constant": Kind((0.5,)),
    "by score": Kind((0.25, 0.5, 1.0), scored=1.0),
    "some scored, stated": Kind((0.3, 0.6), scored=0.7, stated=True),
    "quick": Kind((0.6,), stated=True, delay_ms=900),
    "lost": Kind((0.4, 1.0), scored=1.0, stated=True, lost=0.4),
    "mixed": Kind((0.5, 0.7), without=0.2, unasked=0.1, stated=True),
    "all asked": Kind((1.0,), scored=0.5),
}

UNLIKE = {"by score", "some scored, stated", "lost", "mixed"}
"""Kinds in which some predictions are more likely to be labelled than others."""


def a_stream(kind: Kind, seed: int, length: int) -> list[tuple[str, Prediction | Outcome]]:
    """Predictions of one model about 60 ms apart, and the outcomes of those labelled, by the clock."""
    chance = random.Random(seed)
    events: list[tuple[int, int, str, Prediction | Outcome]] = []
    now, last = 1_000_000, [(0, "a")]
    for i in range(length):
        now += chance.randrange(0, 121)
        score = round(chance.uniform(0.3, 1.0), 3)
        answer = chance.choice("aaab")
        scores = {answer: score, "z": 1.0 - score} if chance.random() < kind.scored else None
        if chance.random() < kind.without:
            events.append((now, 2 * i, str(i), Prediction(str(i), "m", answer, now, scores=scores)))
            continue
        probability = as_float32(kind.probabilities[min(int(score * 3), 2) % len(kind.probabilities)])
        asked = chance.random() < probability
        events.append(
            (
                now,
                2 * i,
                str(i),
                Prediction(
                    str(i),
                    "m",
                    answer,
                    now,
                    scores=scores,
                    label_probability=probability,
                    label_requested=asked if kind.stated else None,
                ),
            )
        )
        comes = (asked and chance.random() >= kind.lost) or chance.random() < kind.unasked
        if not comes:
            continue
        truth = answer if chance.random() < score else chance.choice("abc")
        delay = min(HORIZON_MS - 1, int(chance.expovariate(1 / kind.delay_ms)))
        known = [name for at, name in last if at <= now]
        last.append((now + delay, truth))
        events.append(
            (
                now + delay,
                2 * i + 1,
                str(i),
                Outcome(
                    "m",
                    truth,
                    answer,
                    now + delay,
                    delay,
                    scores=scores,
                    label_at_prediction=known[-1] if i > 50 else None,
                    resolved_ms=now + delay,
                    waited_ms=delay,
                    label_probability=probability,
                    label_requested=asked if kind.stated else None,
                ),
            )
        )
    return [(name, event) for _, _, name, event in sorted(events, key=lambda each: each[:2])]


def tell(register: SampledLabels, events: Sequence[Prediction | Outcome], step: Callable[[], int]) -> None:
    """Tell a register events as a pipeline does: predictions of a stretch, then its outcomes."""
    at = 0
    while at < len(events):
        some = events[at : at + step()]
        predictions = [event for event in some if isinstance(event, Prediction)]
        if predictions:
            register.observe(batch_of(predictions))
        register.learn([event for event in some if isinstance(event, Outcome)])
        at += len(some)


def near(found: float, expected: float) -> bool:
    return math.isnan(found) if math.isnan(expected) else found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", few(KINDS, 1))
def test_estimates_equal_their_definition_at_every_prefix(name):
    events = a_stream(KINDS[name], 7, 3_000)
    register, plain = SampledLabels(SPEC), Plain(HORIZON_MS, SPEC.delta)
    bounded, looks = 0, by_tier(fast=3, default=11, everything=40)
    for i, (id_, event) in enumerate(events):
        tell(register, [event], lambda: 1)
        if isinstance(event, Prediction):
            plain.predict(event)
        else:
            plain.label(id_, event)
        if i % (len(events) // looks) != 0 or not plain.ones:
            continue
        found = register.estimates()["m"]
        for which, interval in zip(("loss", *OPPONENTS), (found.loss, *found.leads), strict=True):
            expected = plain.estimate(which)
            assert near(interval.value, expected.value), (i, which)
            assert near(interval.labels, expected.labels), (i, which)
            assert near(interval.lower, expected.lower), (i, which)
            assert near(interval.upper, expected.upper), (i, which)
            bounded += not math.isnan(expected.lower)
        settled, age, _ = plain.settled()
        is_known = all(one.asked is not None for one in settled)
        asked = sum((one.asked is True) if is_known else one.probability for one in settled)
        assert found.age_ms == age
        assert found.settled == len(settled)
        assert found.asked == pytest.approx(asked)
        assert found.arrived == sum(one.delay_ms is not None for one in settled)
    assert bounded >= 3
    (family,) = [each for each in register.families() if each.name.endswith("without_probability_total")]
    assert family.samples == [(("m",), plain.without)]
    assert register.details()["m"]["sampled_labels"]["labels_unasked"] == plain.unasked


@pytest.mark.parametrize("name", few(KINDS, 2))
def test_the_state_depends_neither_on_cuts_nor_on_interleaving_nor_on_a_restart(name):
    events = [event for _, event in a_stream(KINDS[name], 3, 1_500)]
    once = SampledLabels(SPEC)
    tell(once, events, lambda: 1)
    chance = random.Random(1)
    cut, resumed = SampledLabels(SPEC), SampledLabels(SPEC)
    tell(cut, events, lambda: chance.choice([1, 5, 100, 700]))
    for start in range(0, len(events), 400):
        again = SampledLabels(SPEC)
        if start:
            again.restore(resumed.snapshot())
        resumed = again
        tell(resumed, events[start : start + 400], lambda: 50)
    assert once.unrepresentative() == ({"m"} if name in UNLIKE else set())
    assert cut.snapshot() == once.snapshot() == resumed.snapshot()
    assert cut.details() == once.details() == resumed.details()


def test_models_do_not_touch_each_other_and_one_that_retires_begins_anew():
    events = [event for _, event in a_stream(KINDS["by score"], 3, 400)]
    alone, both = SampledLabels(SPEC), SampledLabels(SPEC)
    tell(alone, events, lambda: 9)
    beside = [replaced(event, model) for event in events for model in "mno"]
    tell(both, beside, lambda: 9)
    both.forget("n")
    both.forget("o")
    assert both.snapshot() == alone.snapshot()
    tell(both, [replaced(event, "n") for event in events], lambda: 9)
    assert both.details()["n"] == both.details()["m"] == alone.details()["m"]


def replaced(event: Prediction | Outcome, model: str) -> Prediction | Outcome:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return type(event)(**{**fields, "model": model})


def test_models_without_probabilities_and_folds_cost_nothing():
    register = SampledLabels(SPEC)
    register.observe(batch_of([Prediction("1", "m", "a", 5)]))
    register.observe(batch_of([Prediction("1", fold_name("m", 1), "a", 5, label_probability=0.5)]))
    register.learn([Outcome("m", "a", "a", 9, 4, resolved_ms=9, waited_ms=4)])
    assert register.snapshot() == b""
    assert register.details() == {}
    assert not any(family.samples for family in register.families())


def test_no_more_models_than_allowed_are_kept():
    register = SampledLabels(SampledLabelsSpec(HORIZON_MS, max_models=2))
    for model in "mno":
        register.observe(batch_of([Prediction("1", model, "a", 5, label_probability=0.5)]))
    assert list(register.details()) == ["m", "n"]
    smaller = SampledLabels(SampledLabelsSpec(HORIZON_MS, max_models=1))
    smaller.restore(register.snapshot())
    assert list(smaller.details()) == ["m"]


@pytest.mark.parametrize("state", [b"\xc1", b"\x91\x94\xa1m\x90\xc4\x01\x00\xc4\x00"])
def test_bytes_that_are_no_snapshot_are_refused(state):
    with pytest.raises(ValueError, match=r".+"):
        SampledLabels(SPEC).restore(state)


def test_a_model_takes_no_more_bytes_than_promised():
    assert SAMPLED.itemsize <= SAMPLED_LABELS_BYTES
