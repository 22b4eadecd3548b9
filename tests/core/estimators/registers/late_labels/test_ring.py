"""What must not matter to late labels: cuts, order, restarts; and events whose own times are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.registers.late_labels.accuracy import estimates_of
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing, RingSnapshot
from tests.core.estimators.registers.late_labels.plain_late import Known, width_of
from tests.core.estimators.registers.late_labels.test_accuracy import (
    GEOMETRY,
    HORIZON_MS,
    ROW,
    observe,
    stream,
)
from tests.tiers import examples

WIDTH = width_of(HORIZON_MS)
STREAM = stream(5, 900, 5 * HORIZON_MS)


def snapshot(ring: LabelRing, row: int) -> RingSnapshot:
    return RingSnapshot(*next(ring.snapshots(np.array([row]))))


@settings(max_examples=examples(1))
@given(
    cuts=st.lists(st.integers(0, len(STREAM)), max_size=8),
    seed=st.integers(0, 2**32 - 1),
    stop=st.integers(0, len(STREAM)),
)
def test_cuts_order_and_restarts_do_not_change_a_bit(cuts, seed, stop) -> None:
    whole, cut, shuffled, resumed = (LabelRing(2, GEOMETRY) for _ in range(4))
    observe(whole, STREAM)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(STREAM)], strict=True):
        observe(cut, STREAM[start:end])
    observe(shuffled, [STREAM[i] for i in np.random.default_rng(seed).permutation(len(STREAM))])
    observe(resumed, STREAM[:stop], row=1)
    resumed.restore(0, snapshot(resumed, 1))
    observe(resumed, STREAM[stop:])
    state = snapshot(whole, 0)
    assert snapshot(cut, 0) == snapshot(shuffled, 0) == snapshot(resumed, 0) == state
    view = whole.view(ROW)
    assert np.array_equal(resumed.view(ROW).counts, view.counts)
    assert view.now_ms[0] == max(o.known_ms for o in STREAM)


def test_every_bucket_holds_the_outcomes_of_its_predictions() -> None:
    ring = LabelRing(1, GEOMETRY)
    observe(ring, STREAM)
    view = ring.view(ROW)
    last = max(o.known_ms for o in STREAM) // WIDTH
    assert view.head[0] == last
    for bucket, counts in zip(view.buckets[0].tolist(), view.counts[0], strict=True):
        own = [o for o in STREAM if o.predicted_ms // WIDTH == bucket]
        assert counts.sum() == len(own)
        assert counts[1].sum() == sum(o.hit for o in own)


def test_a_few_times_in_the_far_future_change_nothing_that_is_reported() -> None:
    ring, wrong = LabelRing(1, GEOMETRY), LabelRing(1, GEOMETRY)
    observe(ring, STREAM)
    far = 250_000_000_000_000
    # It falls in the slot of a bucket that is too old to be used.
    far += (int(ring.view(ROW).head[0]) + 1 - far // WIDTH) % 64 * WIDTH
    observe(wrong, [*STREAM, Known(far, far, hit=False)])
    assert wrong.view(ROW).head[0] == ring.view(ROW).head[0]
    assert wrong.view(ROW).now_ms[0] == ring.view(ROW).now_ms[0]
    found, expected = (estimates_of(r, ROW).late for r in (wrong, ring))
    assert found.corrected.value[0] == pytest.approx(expected.corrected.value[0], abs=0.01)


def test_a_delay_that_the_horizon_forbids_is_left_out() -> None:
    ring = LabelRing(1, GEOMETRY)
    observe(ring, STREAM)
    before = snapshot(ring, 0)
    observe(ring, [Known(STREAM[-1].predicted_ms, 250_000_000_000_000, hit=True)])
    assert snapshot(ring, 0) == before


def test_after_a_long_silence_the_new_outcomes_are_the_present() -> None:
    ring = LabelRing(1, GEOMETRY)
    observe(ring, STREAM)
    later = STREAM[-1].known_ms + 3 * HORIZON_MS
    observe(ring, [Known(later + n, later + n, hit=True) for n in range(60)])
    view = ring.view(ROW)
    assert view.now_ms[0] == later + 59
    assert view.counts.sum() == 60


def test_a_row_that_is_cleared_is_as_new_and_a_copy_goes_its_own_way() -> None:
    ring = LabelRing(2, GEOMETRY)
    observe(ring, STREAM, row=1)
    copy, state = ring.copy_of(np.array([1])), snapshot(ring, 1)
    observe(copy, STREAM[-10:])
    assert snapshot(ring, 1) == state
    assert snapshot(copy, 0) != state
    ring.clear(1)
    assert snapshot(ring, 1) == snapshot(LabelRing(1, GEOMETRY), 0)


def test_counts_end_at_their_limit_by_being_halved_and_shares_stay() -> None:
    ring = LabelRing(1, GEOMETRY)
    observe(ring, STREAM)
    state = snapshot(ring, 0)
    cells = np.frombuffer(state.cells, [("cell", "<u2"), ("count", "<u4")]).copy()
    cells["count"] *= (2**31 - 1) // cells["count"].max()
    cells["count"][cells["count"].argmax()] = 2**31 - 1
    ring.restore(0, state._replace(cells=cells.tobytes()))
    before = estimates_of(ring, ROW)[0]
    observe(ring, STREAM)  # one of these finds a count at its limit
    after = estimates_of(ring, ROW)[0]
    ring.restore(0, snapshot(ring, 0))
    assert ring.view(ROW).counts.max() < 2**31 - 1
    assert ring.view(ROW).counts.min() >= 0
    assert after.outcomes.sum() == pytest.approx(before.outcomes.sum() / 2, rel=1e-6)
    assert np.isfinite([before.settled.value, before.corrected.value]).all()
    for one, other in ((after.settled, before.settled), (after.corrected, before.corrected)):
        assert one.value == pytest.approx(other.value, rel=1e-6)
        assert one.n_eff == pytest.approx(other.n_eff / 2, rel=1e-6)


def test_a_snapshot_that_is_none_is_refused() -> None:
    ring = LabelRing(1, GEOMETRY)
    observe(ring, STREAM)
    state = snapshot(ring, 0)
    for wrong in (
        state._replace(cells=state.cells[:-1]),
        state._replace(buckets=state.buckets[1:]),
        state._replace(cells=b"\xff\xff\x01\x00\x00\x00"),
    ):
        with pytest.raises(ValueError, match=r"late labels must|counts of late labels"):
            ring.restore(0, wrong)
