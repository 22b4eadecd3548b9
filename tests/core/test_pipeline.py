"""The core's state, its identities, and its series."""

from __future__ import annotations

import pytest

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.layout import LABEL_COLUMNS, WITHOUT_MODEL
from streamwatch.core.join.series import identities
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import (
    Stream,
    label_for_all,
    predict,
)


def test_a_snapshot_of_something_else_is_refused():
    with pytest.raises(PackedError, match="the section 'pipeline' cannot be read"):
        Stream().pipeline.restore(b"not a snapshot", ())


def test_a_violated_identity_is_named():
    stream = Stream()
    stream.feed(predict(), label_for_all())
    counters = stream.pipeline.join.arrays.counters[0]
    counters["predictions_accepted"] += 1
    counters["labels"][WITHOUT_MODEL, LABEL_COLUMNS.index("joined")] += 1
    violated = identities(stream.pipeline.join)
    assert [text.split(" = ")[0] for text in violated] == ["predictions accepted", "labels without a model"]
    assert stream.value("join_identities_violated") == 2


def test_series_have_the_documented_names_and_no_sample_where_undefined():
    stream = Stream()
    families = {family.name: family for family in stream.pipeline.families()}
    assert families["oldest_pending_timestamp_seconds"].samples == []
    stream.feed(predict(at=3000))
    stream.until(4500)
    assert stream.value("oldest_pending_timestamp_seconds") == 3
    assert all(family.name.endswith("_total") == (family.kind == "counter") for family in families.values())
    assert all(family.labels == tuple(sorted(family.labels)) for family in families.values())


def test_estimators_limits_are_reported_with_those_of_the_join():
    stream = Stream(JoinSpec(max_models=1))
    stream.monitors.records_over_limit = {"classes": 4, "models": 1}
    stream.feed(predict("a", model="m"), predict("a", model="n"))
    assert stream.value("records_over_limit_total", "classes") == 4
    assert stream.value("records_over_limit_total", "models") == 2
