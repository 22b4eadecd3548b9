"""Over the durable store the join does exactly what it does in memory, however little of it is in memory."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.events import Prediction
from streamwatch.core.fold_names import fold_name
from tests.core.join.join_stream import Stream
from tests.core.join.test_join_model import a_script, a_spec
from tests.edge.stores.rocksdb.stream import DurableStream, alive_now, digested
from tests.tiers import examples


def batches(chance, events):
    """Cut into batches of 1 to a few dozen events."""
    while events:
        size = chance.choice([1, 1, 2, 3, 8, 30])
        yield events[:size]
        events = events[size:]


def folded(chance, spec, events):
    """The same where models predict in folds, and folds perhaps share a stream."""
    spec = replace(spec, folds=True, max_models=chance.choice([2, 9]))
    if spec.order == "resolution":
        spec = replace(spec, folds_share_stream=chance.random() < 0.5)
    for event in events:
        if type(event) is Prediction:
            event.model = fold_name(event.model, chance.randrange(3))
    return spec, events


@pytest.mark.slow
@settings(max_examples=examples(1.5))
@given(
    st.integers(0, 2**32),
    st.integers(0, 300),
    st.sampled_from([0, 1, 5, 50, 1000]),
    st.sampled_from([0, 1, 3, 5_000]),
    st.booleans(),
    st.sampled_from(["first", "last", "both"]),
)
def test_outcomes_counters_and_records_are_those_of_the_memory_store(
    seed, length, cache_entries, due_records, in_folds, conflicts
):
    chance = Random(seed)
    spec = replace(a_spec(chance), conflicts=conflicts)
    events = digested(a_script(chance, 300)[:length])
    if in_folds:
        spec, events = folded(chance, spec, events)
    directory = Path(tempfile.mkdtemp())
    memory = Stream(spec)
    durable = DurableStream(directory / "state", spec, cache_entries, due_records)
    often, leave = chance.choice([1.0, 0.5, 0.1]), chance.choice([0, 0.1, 0.4])
    try:
        for batch in batches(chance, events):
            assert durable.feed(*batch) == memory.feed(*batch)
            assert durable.pipeline.snapshot() == memory.pipeline.snapshot()
            assert alive_now(durable) == alive_now(memory)
            if chance.random() < often:
                durable.commit()
                assert alive_now(durable) == alive_now(memory)
                if chance.random() < leave:
                    durable.reopen()
                    assert durable.pipeline.snapshot() == memory.pipeline.snapshot()
                    assert alive_now(durable) == alive_now(memory)
    finally:
        durable.store.close()
        shutil.rmtree(directory)
