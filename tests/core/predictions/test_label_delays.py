"""Share labelled by age, against a Kaplan–Meier estimate over single predictions, at every prefix."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from streamwatch.core.predictions.kind import batch_of
from streamwatch.core.predictions.label_delays import BUCKETS, LabelDelays, LabelDelaysSpec, edges_of
from streamwatch.core.records.events import OTHER, Outcome, Prediction, fold_name
from tests.tiers import few

HORIZON_MS = 64_000
WIDTH_MS = 1_500
SPEC = LabelDelaysSpec(HORIZON_MS, max_classes=2)

Event = Prediction | Outcome


def a_stream(seed: int, length: int = 400) -> list[Event]:
    """Predictions a few hundred ms apart, most of them labelled, errors sooner than hits; in time's order."""
    chance = random.Random(seed)
    events: list[tuple[int, int, Event]] = []
    now = 10_000
    for i in range(length):
        now += chance.randrange(0, 700)
        made = now - chance.choice([0, 0, 300, 2_000])
        model, answer = chance.choice("mmn"), chance.choice("aaabcd")
        events.append((now, 2 * i, Prediction(str(i), model, answer, now, made)))
        if chance.random() < 0.8:
            is_error = chance.random() < 0.3
            delay = min(HORIZON_MS, int(chance.expovariate(1 / (4_000 if is_error else 20_000))))
            labelled = made + delay
            if labelled >= now:
                truth = "z" if is_error else answer
                outcome = Outcome(model, truth, answer, labelled, delay, resolved_ms=labelled)
                events.append((labelled, 2 * i + 1, outcome))
    return [event for _, _, event in sorted(events, key=lambda each: each[:2])]


def feed(register: LabelDelays, events: Sequence[Event], step: Callable[[], int] = lambda: 1) -> None:
    """Feed a register events as a pipeline does: predictions of a stretch, then its outcomes."""
    at = 0
    while at < len(events):
        some = events[at : at + step()]
        predictions = [event for event in some if isinstance(event, Prediction)]
        if predictions:
            register.observe(batch_of(predictions))
        register.learn([event for event in some if isinstance(event, Outcome)])
        at += len(some)


def brute_force(events: Sequence[Event], model: str, chosen: Callable[[str], bool]) -> list[list[float]]:
    """Product-limit estimate, and cumulative incidence of hits and errors, at the end of each bin.

    Every prediction is one subject: it is labelled in its bin, or censored after the last bin that the
    youngest prediction of its stretch has lived through.
    """
    edges = edges_of(HORIZON_MS).tolist()
    made = [event for event in events if isinstance(event, Prediction)]
    since = made[0].record_ms if made else 0
    now = max((event.record_ms for event in made), default=0)
    subjects: list[tuple[int, int, str]] = []  # the bin it is labelled in, bins it has lived, kind
    labels: dict[tuple[str, int, str], list[Outcome]] = {}
    for event in events:
        if isinstance(event, Outcome):
            labels.setdefault(
                (event.model, event.event_ms - event.delay_ms, event.predicted_class), []
            ).append(event)
    for event in made:
        own = event.record_ms if event.timestamp_ms is None else event.timestamp_ms
        found = labels.get((event.model, own, event.predicted_class), [])
        outcome = found.pop() if found else None
        if event.model != model or not chosen(event.predicted_class) or own < since:
            continue
        if now // WIDTH_MS - own // WIDTH_MS >= BUCKETS:
            continue
        age = now - (own // WIDTH_MS + 1) * WIDTH_MS
        lived = sum(age >= edge for edge in edges)
        if outcome is None:
            subjects.append((len(edges), lived, ""))
            continue
        kind = "hit" if outcome.true_class == outcome.predicted_class else "error"
        subjects.append((next(k for k, edge in enumerate(edges) if outcome.delay_ms <= edge), lived, kind))
    waiting, hits, errors = 1.0, 0.0, 0.0
    counted: list[list[float]] = []
    for k in range(len(edges)):
        at_risk = [each for each in subjects if each[0] >= k and each[1] > k]
        if waiting > 0:
            if not at_risk:
                break
            of_kind = [sum(each[0] == k and each[2] == kind for each in at_risk) for kind in ("hit", "error")]
            hits += waiting * of_kind[0] / len(at_risk)
            errors += waiting * of_kind[1] / len(at_risk)
            waiting = 0.0 if sum(of_kind) == len(at_risk) else waiting * (1 - sum(of_kind) / len(at_risk))
        counted.append([1 - waiting, hits, errors])
    return counted


@pytest.mark.parametrize("seed", few([1, 2, 3], 1))
def test_curves_are_those_of_kaplan_and_meier_at_every_prefix(seed: int) -> None:
    events = a_stream(seed)
    register = LabelDelays(SPEC)
    lengths: set[int] = set()
    for stop in range(len(events)):
        feed(register, events[stop : stop + 1])
        if stop % 7:
            continue
        for model, details in register.details().items():
            document = details["label_delays"]
            expected = brute_force(events[: stop + 1], model, lambda _: True)
            ours = zip(
                document["labelled"], document["labelled_hits"], document["labelled_errors"], strict=True
            )
            assert [list(each) for each in ours] == [pytest.approx(each, abs=1e-12) for each in expected]
            own = [name for name in document["classes"] if name != OTHER]
            for name, curve in document["classes"].items():

                def chosen(shown: str, name: str = name) -> bool:
                    return shown == name if name != OTHER else shown not in own  # noqa: B023

                alone = brute_force(events[: stop + 1], model, chosen)
                assert curve == pytest.approx([each[0] for each in alone], abs=1e-12)
            assert len(own) <= 2
            lengths.add(len(expected))
    assert {0, 23} <= lengths


@pytest.mark.parametrize("seed", range(5))
def test_the_state_does_not_depend_on_cuts_or_restarts(seed: int) -> None:
    events, chance = a_stream(10 + seed), random.Random(seed)
    whole = LabelDelays(SPEC)
    feed(whole, events)
    cut = LabelDelays(SPEC)
    at = 0
    while at < len(events):
        stop = at + chance.randrange(1, 60)
        feed(cut, events[at:stop], lambda: chance.randrange(1, 20))
        at = stop
        again = LabelDelays(SPEC)
        if state := cut.snapshot():
            again.restore(state)
        cut = again
    assert cut.snapshot() == whole.snapshot()
    assert cut.details() == whole.details()


def test_all_that_still_waits_says_nothing_and_all_labelled_says_one() -> None:
    register = LabelDelays(SPEC)
    assert register.snapshot() == b""
    assert register.details() == {}
    feed(register, [Prediction(str(i), "m", "a", i) for i in range(10)])
    assert register.details()["m"]["label_delays"]["labelled"] == []
    feed(register, [Outcome("m", "a", "a", 200 + i, 200, resolved_ms=200 + i) for i in range(10)])
    feed(register, [Prediction("last", "n", "a", 20_000)])
    assert register.details()["m"]["label_delays"]["labelled"] == [1.0] * 23


def test_expired_predictions_with_an_assumed_class_are_not_labelled() -> None:
    register = LabelDelays(SPEC)
    feed(register, [Prediction(str(i), "m", "a", 0) for i in range(4)])
    feed(register, [Outcome("m", "a", "a", 100, 100), Outcome("m", "a", "a", 64_000, 64_000, assumed=True)])
    feed(register, [Prediction("last", "n", "a", 70_000)])
    assert register.details()["m"]["label_delays"]["labelled"] == pytest.approx([0.25] * 23)
    (family,) = register.families()
    assert family.samples == [(("m",), pytest.approx(0.25))]


def test_labels_of_predictions_from_before_it_began_do_not_count() -> None:
    register = LabelDelays(SPEC)
    feed(register, [Prediction("1", "m", "a", 50_000)])
    feed(register, [Outcome("m", "a", "a", 51_000, 30_000, resolved_ms=51_000)])
    feed(register, [Prediction("2", "n", "a", 120_000)])
    labelled = register.details()["m"]["label_delays"]["labelled"]
    assert all(math.isclose(share, 0.0) for share in labelled)
    assert labelled


@pytest.mark.parametrize(("stretches", "counts"), [(BUCKETS - 1, True), (BUCKETS, False)])
def test_labels_of_predictions_from_too_long_before_the_newest_do_not_count(
    stretches: int, *, counts: bool
) -> None:
    register, began_ms = LabelDelays(SPEC), 20 * WIDTH_MS
    feed(register, [Prediction("1", "m", "a", began_ms)])
    feed(register, [Prediction("2", "m", "a", began_ms + stretches * WIDTH_MS)])
    before = register.snapshot()
    feed(register, [Outcome("m", "a", "a", began_ms + 900, 900)])
    assert (register.snapshot() != before) is counts


def test_ages_are_geometric_and_the_metric_is_the_share_at_the_last_one_known() -> None:
    """Of four predictions one gets a label within a second, another within 20; then 30 seconds are known."""
    register = LabelDelays(SPEC)
    feed(register, [Prediction(str(i), "m", "a", 0) for i in range(4)])
    feed(register, [Outcome("m", "a", "a", 1_000, 1_000), Outcome("m", "b", "a", 20_000, 20_000)])
    feed(register, [Prediction("last", "n", "a", WIDTH_MS + 30_000)])
    document = register.details()["m"]["label_delays"]
    ages = [HORIZON_MS / 1_000 * 240 ** ((k - 22) / 22) for k in range(23)]
    known = [age for age in ages if age <= 30]
    assert document["age_seconds"] == pytest.approx(known, abs=6e-4)
    assert document["labelled"] == [(age >= 1) / 4 + (age >= 20) / 4 for age in known]
    assert 0.0 in document["labelled"]
    (family,) = register.families()
    assert family.samples == [(("m",), 0.5)]


def test_a_forgotten_model_begins_anew() -> None:
    register = LabelDelays(SPEC)
    feed(register, a_stream(5))
    register.forget("m")
    assert set(register.details()) == {"n"}


def test_bytes_that_are_no_state_are_refused() -> None:
    register = LabelDelays(SPEC)
    feed(register, a_stream(6, 50))
    state = register.snapshot()
    for wrong in (b"", state[:-3], b"\x93\x00\x00\x91\x92\xa1m\x91\x92\xa1a\x91\x92\x00\x91\x01"):
        with pytest.raises(ValueError, match=r"expected|truncated|length"):
            LabelDelays(SPEC).restore(wrong)


def test_folds_of_a_model_are_left_out():
    register = LabelDelays(SPEC)
    names = {"m": "m", "n": fold_name("n", 1)}
    feed(register, [msgspec.structs.replace(event, model=names[event.model]) for event in a_stream(1)])
    assert list(register.details()) == ["m"]
    (family,) = register.families()
    assert [key for key, _ in family.samples] == [("m",)]
