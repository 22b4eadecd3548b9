"""Record time: clamping, the two watermarks, and time alignment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.events import Partition, Progress
from streamwatch.core.specs import TimeSpec
from streamwatch.core.watermark import Timeline
from tests.core.naive_join import NaiveTime

P0, P1, L0, L1, B0 = (Partition(t, p) for t, p in (("p", 0), ("p", 1), ("l", 0), ("l", 1), ("b", 0)))
DAY = 86_400_000
NOW = 20_000 * DAY


def timeline(*labels, time=None):
    return Timeline(
        time or TimeSpec(), {P0: "prediction", P1: "prediction", **dict.fromkeys(labels or (L0,), "label")}
    )


def read(line, partition, at_ms, *, caught_up=False):
    line.progress(Progress(*partition, at_ms, caught_up))
    return line.prediction_ms, line.label_ms


def test_a_watermark_is_the_minimum_over_its_sides_partitions():
    line = timeline()
    read(line, P0, 5000)
    assert read(line, P1, 3000) == (3000, -1)
    assert read(line, L0, 9000) == (3000, 9000)
    assert read(line, P1, 8000) == (5000, 9000)


def test_a_partition_that_has_delivered_nothing_holds_its_watermark():
    line = timeline()
    assert read(line, P0, 5000) == (-1, -1)


def test_a_caught_up_partition_does_not_hold_the_watermark():
    line = timeline()
    read(line, P0, 5000)
    read(line, P1, 3000, caught_up=True)
    assert line.prediction_ms == 5000


def test_a_side_that_is_caught_up_has_the_highest_time_seen_on_any_topic():
    line = timeline()
    read(line, P0, 7000, caught_up=True)
    read(line, P1, 3000, caught_up=True)
    assert read(line, L0, 9000) == (9000, 9000)


def test_an_empty_topic_that_is_caught_up_holds_nothing():
    line = timeline()
    read(line, L0, -1, caught_up=True)
    read(line, P0, 7000)
    assert read(line, P1, 6000) == (6000, 7000)


def test_watermarks_never_regress():
    line = timeline()
    read(line, P0, 7000, caught_up=True)
    read(line, P1, 9000, caught_up=True)
    assert read(line, P0, 7500) == (9000, -1)
    line.add(Partition("p", 2), "prediction")
    assert read(line, L0, 1000) == (9000, 1000)


def test_a_partition_of_both_kinds_holds_both_watermarks():
    line = Timeline(TimeSpec(), {P0: "prediction", L0: "label", B0: "both"})
    read(line, P0, 8000)
    read(line, L0, 9000)
    assert read(line, B0, 4000) == (4000, 4000)


def test_an_added_partition_holds_its_side_until_it_is_caught_up():
    line = timeline()
    read(line, P0, 5000, caught_up=True)
    read(line, P1, 5000, caught_up=True)
    added = Partition("p", 2)
    line.add(added, "prediction")
    read(line, L0, 9000)
    assert not line.caught_up
    assert line.prediction_ms == 5000
    assert read(line, added, 100, caught_up=True) == (9000, 9000)
    assert set(line.partitions) == {P0, P1, L0, added}


def test_all_partitions_caught_up_is_caught_up():
    line = timeline()
    for partition in (P0, P1, L0):
        assert not line.caught_up
        read(line, partition, 1, caught_up=True)
    assert line.caught_up


def test_after_a_new_start_nothing_is_caught_up_until_the_source_says_so():
    line = timeline()
    for partition in (P0, P1, L0):
        read(line, partition, 1000, caught_up=True)
    restored = timeline()
    restored.restore(line.state())
    for event in restored.unread():
        restored.progress(event)
    read(restored, P0, 9_000_000, caught_up=True)
    assert (restored.prediction_ms, restored.label_ms) == (1000, 1000)


def test_a_partition_more_than_max_skew_ahead_of_the_slowest_is_held_back():
    line = timeline(L0, L1, time=TimeSpec(max_skew_ms=1000))
    for partition, at_ms in ((P0, 5000), (P1, 6000), (L0, 6001), (L1, 9000)):
        read(line, partition, at_ms)
    assert line.ahead() == {L0, L1}
    read(line, P0, 5001)
    assert line.ahead() == {L1}


def test_a_partition_that_is_caught_up_does_not_slow_the_others_but_is_held_back_itself():
    line = timeline(L0, L1, time=TimeSpec(max_skew_ms=1000))
    read(line, L0, 100, caught_up=True)
    read(line, L1, 90_000, caught_up=True)
    read(line, P0, 5000)
    read(line, P1, 5500)
    assert line.ahead() == {L1}


def test_before_every_partition_has_delivered_or_is_caught_up_the_first_ones_wait():
    line = timeline(time=TimeSpec(max_skew_ms=1000))
    read(line, P0, NOW)
    assert line.ahead() == {P0}


def test_nobody_is_held_back_when_all_are_caught_up():
    line = timeline()
    for partition, at_ms in ((P0, 1), (P1, 2), (L0, NOW)):
        read(line, partition, at_ms, caught_up=True)
    assert line.ahead() == frozenset()


@pytest.mark.parametrize(
    ("timestamp_ms", "stamped_ms", "clamped"),
    [
        (NOW, NOW, 0),
        (NOW - DAY, NOW - DAY, 0),
        (NOW - DAY - 1, NOW - DAY, 1),
        (-1, NOW - DAY, 1),
        (NOW + 3_600_000, NOW + 3_600_000, 0),
        (NOW + 3_600_001, NOW + 3_600_000, 1),
    ],
)
def test_record_timestamps_are_clamped_to_the_partitions_past_and_an_hour_from_now(
    timestamp_ms, stamped_ms, clamped
):
    line = timeline()
    assert line.stamp(P0, NOW, NOW) == NOW
    assert line.stamp(P0, timestamp_ms, NOW) == stamped_ms
    assert line.clamped == clamped


def test_the_bound_below_follows_the_partitions_own_maximum_and_no_other():
    line = timeline()
    line.stamp(P0, NOW, NOW)
    assert line.stamp(P1, 5, NOW) == 5


def test_a_host_clock_that_runs_behind_does_not_turn_time_back():
    line = timeline()
    line.stamp(P0, NOW, NOW)
    assert line.stamp(P0, NOW + 10, NOW - 9 * DAY) == NOW
    assert line.stamp(P0, NOW - 10, NOW - 9 * DAY) == NOW - 10


def test_a_record_without_a_timestamp_on_a_fresh_partition_is_at_the_epoch():
    line = timeline()
    assert line.stamp(P0, -1, NOW) == 0


@given(
    st.lists(st.lists(st.integers(-2, 12), min_size=1, max_size=6), max_size=6),
    st.integers(0, 12),
)
def test_stamping_records_together_is_stamping_them_in_turn(pieces: list[list[int]], now_ms: int):
    spec = TimeSpec(max_disorder_ms=3, max_future_ms=2)
    together, in_turn = (Timeline(spec, {P0: "prediction"}) for _ in range(2))
    for piece in pieces:
        stamps = together.stamp_all(P0, piece, now_ms)
        assert list(stamps) == [in_turn.stamp(P0, timestamp_ms, now_ms) for timestamp_ms in piece]
    assert together.clamped == in_turn.clamped


def test_an_unknown_partition_is_a_defect():
    with pytest.raises(KeyError):
        timeline().stamp(Partition("other", 0), 0, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from([P0, P1, L0, L1, B0]), st.integers(-1, 50), st.booleans()), max_size=80
    )
)
def test_watermarks_equal_a_full_scan_after_every_event(events):
    sides = {P0: "prediction", P1: "prediction", L0: "label", L1: "label", B0: "both"}
    line, naive = Timeline(TimeSpec(), sides), NaiveTime(sides)
    progress = [Progress(*partition, at_ms, caught_up) for partition, at_ms, caught_up in events]
    preview = line.preview(progress)
    for event in progress:
        line.progress(event)
        naive.progress(event)
        assert line.prediction_ms == naive.watermarks["prediction"]
        assert line.label_ms == naive.watermarks["label"]
    assert preview == (line.prediction_ms, line.label_ms)
