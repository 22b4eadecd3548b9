"""Totals add up in whatever order; the label at a prediction is that of a walk through all labels."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.buckets.label_history import LabelHistories
from streamwatch.core.buckets.places import RECORD, decode_place, encode_place
from streamwatch.core.buckets.totals import RecordCounts, Totals, decode_totals, encode_totals
from streamwatch.core.join.counters import JoinCounters, LabelCounters
from streamwatch.core.join.mismatch import AgreementState
from streamwatch.core.join.models import ModelActivity

counts = st.integers(0, 2**40)
by_name = st.dictionaries(st.sampled_from("abc"), counts)


def totals_of(number):
    """Totals of a bucket, whose models are its own."""
    counters = st.builds(
        JoinCounters,
        predictions_accepted=counts,
        labels_early=counts,
        with_model=st.builds(LabelCounters, accepted=counts, joined=counts),
        without_model=st.builds(LabelCounters, accepted=counts, late=counts),
        null_records=by_name,
        records_invalid=st.dictionaries(st.sampled_from("tu"), by_name),
        model_records_invalid=by_name,
    )
    models = st.dictionaries(
        st.sampled_from([f"{number}{name}" for name in "ab"]),
        st.builds(ModelActivity, st.just("m"), counts, counts, counts),
    )
    return st.builds(
        Totals,
        clock_ms=st.integers(-1, 100),
        counters=counters,
        records=st.builds(RecordCounts, evaluated=by_name, corrected=by_name),
        over_limit=by_name,
        pending=counts,
        held=counts,
        oldest_ms=st.none() | counts,
        models=models,
        agreement=st.builds(AgreementState, settled=st.just([f"{number}a"])),
    )


@given(st.tuples(totals_of(1), totals_of(2), totals_of(3)), st.permutations(range(3)))
def test_totals_add_up_in_whatever_order_and_are_read_as_they_were_written(several, order):
    one, two, three = several
    whole = one.plus(two).plus(three)
    assert one.plus(two.plus(three)) == whole
    assert reduce(Totals.plus, [several[k] for k in order], Totals()) == whole
    assert whole.counters.with_model.accepted == sum(each.counters.with_model.accepted for each in several)
    assert whole.counters.records_invalid.get("t", {}).get("a", 0) == sum(
        each.counters.records_invalid.get("t", {}).get("a", 0) for each in several
    )
    assert decode_totals(encode_totals(whole)) == whole


@given(
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from("xyz")), max_size=40),
    st.lists(st.integers(0, 60)),
    st.integers(0, 60),
)
def test_the_label_at_a_prediction_is_the_last_one_before_it(labels, asked, forgotten):
    labels.sort(key=lambda each: each[0])
    histories = LabelHistories()
    for number, (ms, name) in enumerate(labels):
        histories.add("m", (ms, RECORD, 0, number, 0, 0), name)

    def brute_force(ms):
        before = [name for at, name in labels if at < ms]
        return before[-1] if before else None

    for ms in asked:
        assert histories.at("m", (ms, RECORD)) == brute_force(ms)
    histories.forget_before(forgotten)
    for ms in range(forgotten, 61):
        assert histories.at("m", (ms, RECORD)) == brute_force(ms)
    histories.retire("m")
    assert histories.at("m", (60, RECORD)) is None


@given(st.tuples(*[st.integers(-(2**62), 2**62)] * 4), st.integers(-(2**62), 2**62))
def test_a_place_is_read_as_it_was_encoded(numbers, own_ms):
    time_ms, rank, offset, event = numbers
    place = (time_ms, RECORD, rank, offset, event)
    assert decode_place(encode_place(place, own_ms)) == (place, own_ms)
