"""The past by stretches of time: exact whatever the order and the cuts, bounded, and back after a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.past import (
    FINE,
    HOUR_S,
    STRETCH,
    Pasts,
    PastSnapshot,
    PastView,
    merged,
    merged_by_model,
    past_bytes,
    tiers,
)
from streamwatch.core.estimators.set import EstimatorSet, decode, encode
from streamwatch.core.records.events import Outcome
from tests.layouts import TINY
from tests.tiers import examples

SPEC = replace(TINY, max_models=4, history_days=2)
NOON_S = 1_760_011_200
WEEK_S = 7 * 24 * HOUR_S

times = st.one_of(
    st.integers(NOON_S, NOON_S + 900),
    st.integers(NOON_S - WEEK_S, NOON_S + WEEK_S),
    st.sampled_from([0, -1, 2**40, NOON_S + 240 * 60, NOON_S + 2 * 24 * HOUR_S]),
)
outcomes = st.lists(
    st.builds(
        lambda model, truth, predicted, at: Outcome(model, truth, predicted, 1_000 * at, 5),
        st.sampled_from("mn"),
        st.sampled_from("ab"),
        st.sampled_from("ab"),
        times,
    ),
    max_size=40,
)


Counts: TypeAlias = dict[tuple[int, int], tuple[int, int, int]]


def by_hand(stream: list[Outcome], model: str, days: int) -> Counts:
    """Counts by length and start, one outcome after the other: later stretches take slots of earlier."""
    slots: dict[tuple[int, int], int] = {}
    counts: dict[tuple[int, int], Counter[str]] = {}
    previous = None
    for outcome in stream:
        if outcome.model != model:
            continue
        for seconds, size in [*FINE, (HOUR_S, 24 * days)]:
            stretch = outcome.event_ms // 1_000 // seconds
            held = slots.get((seconds, stretch % size))
            if held is not None and held > stretch:
                continue
            if held != stretch:
                slots[seconds, stretch % size] = stretch
                counts.pop((seconds, (held or 0) * seconds), None) if held is not None else None
                counts[seconds, stretch * seconds] = Counter()
            counts[seconds, stretch * seconds].update(
                outcomes=1,
                right=outcome.true_class == outcome.predicted_class,
                no_change=outcome.true_class == previous,
            )
        previous = outcome.true_class
    return {key: (c["outcomes"], c["right"], c["no_change"]) for key, c in counts.items()}


ROWS = {"m": 0, "n": 1}


def batch(stream: list[Outcome]) -> Batch:
    """Outcomes as estimators are given them."""

    def column(values: Iterable[int], dtype: type = np.int32) -> Any:
        return np.array(list(values), dtype)

    return Batch(
        stream,
        column(ROWS[o.model] for o in stream),
        column("ab".index(o.true_class) for o in stream),
        column("ab".index(o.predicted_class) for o in stream),
        column(-1 for _ in stream),
        column((o.event_ms for o in stream), np.int64),
        column((o.delay_ms for o in stream), np.int64),
        column((0 for _ in stream), np.bool_),
        made=column(range(len(stream)), np.uint32),
        resolved_ms=column((o.event_ms for o in stream), np.int64),
        waited_ms=column((o.delay_ms for o in stream), np.int64),
    )


def seen(pasts: Pasts, model: str, days: int = 2) -> Counts:
    return counts_of((pasts.view(ROWS[model]),), days)


def counts_of(views: Sequence[PastView], days: int) -> Counts:
    return {
        (seconds, start): (n, right, no_change)
        for start, seconds, n, right, no_change in merged(views, days).tolist()
    }


@pytest.mark.slow
@given(stream=outcomes, cuts=st.lists(st.integers(0, 40), max_size=6))
@settings(max_examples=examples(25))
def test_every_stretch_is_what_a_slow_count_says_at_every_cut(stream: list[Outcome], cuts: list[int]) -> None:
    pasts = Pasts(2, 2)
    start = 0
    for cut in sorted({*cuts, len(stream)}):
        pasts.observe(batch(stream[start:cut]))
        start = max(start, cut)
        for model in "mn":
            assert seen(pasts, model) == by_hand(stream[:cut], model, 2)


@pytest.mark.slow
@given(stream=outcomes, cut=st.integers(0, 40), other=st.integers(0, 40))
@settings(max_examples=examples(25))
def test_cuts_and_restores_give_the_same_bytes(stream: list[Outcome], cut: int, other: int) -> None:
    whole, cut_up, restored = Pasts(2, 2), Pasts(2, 2), Pasts(2, 2)
    whole.observe(batch(stream))
    for part in (stream[: min(cut, other)], stream[min(cut, other) : max(cut, other)]):
        cut_up.observe(batch(part))
    for row in ROWS.values():
        (state,) = cut_up.snapshots(np.array([row]))
        assert state is not None
        restored.restore(row, PastSnapshot(*state))
    restored.observe(batch(stream[max(cut, other) :]))
    assert restored.snapshots(np.arange(2)) == whole.snapshots(np.arange(2))


@given(streams=st.lists(outcomes, min_size=1, max_size=3))
@settings(max_examples=examples(0.3))
def test_several_models_put_together_at_once_are_each_what_it_is_alone(streams: list[list[Outcome]]) -> None:
    views: list[PastView] = []
    for stream in streams:
        pasts = Pasts(2, 2)
        pasts.observe(batch(stream))
        views.append(pasts.view(0))
    settled = np.concatenate([view.settled for view in views])
    minutes = np.concatenate([view.gathered for view in views])
    owners = [
        np.repeat(np.arange(len(views)), [len(part) for part in parts]) for parts in zip(*views, strict=True)
    ]
    found, of = merged_by_model(settled, owners[0], minutes, owners[1], 2)
    for number, view in enumerate(views):
        assert found[of == number].tobytes() == merged([view], 2).tobytes()


def test_outcomes_of_more_minutes_than_are_gathered_are_all_counted() -> None:
    pasts, days = Pasts(2, 2), 2
    for start in range(0, 3_000, 600):
        times = range(start, start + 600)
        pasts.observe(
            batch([Outcome(m, "a", "b", 1_000 * (NOON_S + 30 * n), 5) for n in times for m in "mn"])
        )
    for model in "mn":
        hours = {k: v for k, v in seen(pasts, model, days).items() if k[0] == HOUR_S}
        assert sum(outcomes for outcomes, *_ in hours.values()) == 3_000


def test_views_of_all_models_are_those_of_each_and_do_not_change() -> None:
    pasts = Pasts(2, 2)
    stream = [Outcome(m, "a", "a", 1_000 * (NOON_S + 60 * n), 5) for n in range(3) for m in "mn"]
    pasts.observe(batch(stream[:3]))
    views = pasts.views({"both": [0, 1], "n": [1]})
    expected = {"both": [pasts.view(0), pasts.view(1)], "n": [pasts.view(1)]}
    pasts.observe(batch(stream[3:]))
    assert list(views) == ["both", "n"]
    for model, own in expected.items():
        assert [view.gathered.tolist() for view in views[model]] == [each.gathered.tolist() for each in own]


def test_counts_do_not_depend_on_the_order_of_times() -> None:
    stream = [Outcome("m", "a", "a", 1_000 * (NOON_S + 61 * n), 5) for n in range(500)]
    forward, backward = Pasts(2, 2), Pasts(2, 2)
    forward.observe(batch(stream))
    backward.observe(batch(stream[::-1]))
    found = [{key: counts[:2] for key, counts in seen(p, "m").items()} for p in (forward, backward)]
    assert found[0] == found[1]  # but for which label was the previous one


def test_a_view_does_not_change_with_later_outcomes() -> None:
    pasts = Pasts(2, 2)
    pasts.observe(batch([Outcome("m", "a", "a", 1_000 * NOON_S, 5)]))
    view = pasts.view(0)
    before = merged((view,), 2).tobytes()
    pasts.observe(batch([Outcome("m", "a", "b", 1_000 * (NOON_S + 60 * n), 5) for n in range(50)]))
    assert merged((view,), 2).tobytes() == before


def test_a_month_of_a_busy_model_stays_within_its_bytes() -> None:
    pasts = Pasts(2, 30)
    pasts.observe(batch([Outcome("m", "a", "a", 1_000 * (NOON_S + 60 * n), 5) for n in range(32 * 24 * 60)]))
    stretches = merged((pasts.view(0),), 30)
    assert len(stretches) == sum(slots for _, slots in tiers(30))
    assert stretches.nbytes <= past_bytes(30)
    hours = stretches[stretches["seconds"] == HOUR_S]
    assert set(hours["outcomes"].tolist()) == {60}
    (state,) = pasts.snapshots(np.array([0]))
    assert state is not None
    assert len(PastSnapshot(*state).stretches) == stretches.nbytes


def test_a_state_of_before_there_was_a_past_begins_one_and_days_may_change() -> None:
    monitors = EstimatorSet(SPEC)
    stream = [Outcome("m", "a", "a", 1_000 * (NOON_S + HOUR_S * n), 5) for n in range(40)]
    monitors.fold(stream)
    old = encode(msgspec.structs.replace(decode(monitors.snapshot("m")), past=None))
    other = EstimatorSet(SPEC)
    other.restore(old)
    assert counts_of(other.pasts()["m"], 2) == {}
    other.fold(stream[:1])
    assert sum(n for n, *_ in counts_of(other.pasts()["m"], 2).values()) == 3  # of each tier
    fewer = EstimatorSet(replace(SPEC, history_days=1))
    fewer.restore(monitors.snapshot("m"))
    hours = [start for seconds, start in counts_of(fewer.pasts()["m"], 1) if seconds == HOUR_S]
    assert sorted(hours) == [NOON_S + HOUR_S * n for n in range(16, 40)]
    none = EstimatorSet(replace(SPEC, history_days=0))
    none.restore(monitors.snapshot("m"))
    none.fold(stream)
    assert none.pasts() == {}


def test_bytes_that_are_no_stretches_are_refused() -> None:
    monitors = EstimatorSet(SPEC)
    monitors.fold([Outcome("m", "a", "a", 1_000 * NOON_S, 5)])
    state = decode(monitors.snapshot("m"))
    assert state.past is not None
    torn = state.past._replace(stretches=state.past.stretches[1:])
    with pytest.raises(ValueError, match=f"{STRETCH.itemsize} bytes a stretch"):
        EstimatorSet(SPEC).restore(encode(msgspec.structs.replace(state, past=torn)))


def test_a_retired_model_leaves_nothing_to_who_comes_after_it() -> None:
    monitors = EstimatorSet(SPEC)
    monitors.fold([Outcome("m", "a", "a", 1_000 * NOON_S, 5)])
    monitors.retire("m")
    monitors.fold([Outcome("n", "a", "b", 1_000 * NOON_S, 5)])
    assert counts_of(monitors.pasts()["n"], 2) == by_hand([Outcome("n", "a", "b", 1_000 * NOON_S, 5)], "n", 2)
