"""Totals add up in whatever order."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.buckets.view import RecordCounts, Totals, decode_totals, encode_totals
from streamwatch.core.join.caveats import AgreementState
from streamwatch.core.join.counters import JoinCounters, LabelCounters
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
