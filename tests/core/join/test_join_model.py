"""The join equals a naive one, however its input is cut, and wherever it is stopped and restored."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.records.events import Invalid, Label, NullRecord, Prediction, as_float32
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from tests.core.join.join_stream import Stream, alive, clocked, tick
from tests.core.join.naive_join import NaiveJoin
from tests.tiers import examples

SMALL = [0, 1, 2, 3, 5, 9, 17, 1000, 1000]
SECONDS = [0, 400, 1000, 2500, 5000, 8000, 20_000]
KINDS = {"prediction": 8, "label": 5, "label for all": 3, "time passes": 6, "null": 1, "invalid": 1}
CALM = {"prediction": 12, "label": 8, "time passes": 1}
COMPARISONS = [
    (),
    (ComparisonSpec("m", ("n", "o")),),
    (ComparisonSpec("n", ("*",)),),
    (ComparisonSpec("m", ("*",)), ComparisonSpec("n", ("o", "m"))),
]


def a_spec(chance):
    return JoinSpec(
        horizon_ms=chance.choice([1000, 2500, 5000, 20_000]),
        early_horizon_ms=chance.choice(SECONDS),
        dedup_horizon_ms=chance.choice(SECONDS),
        max_pending=chance.choice(SMALL),
        max_labels=chance.choice(SMALL),
        max_dedup_entries=chance.choice(SMALL),
        assume=chance.choice([None, "x"]),
        order=chance.choice(["resolution", "prediction_time"]),
        reorder_window_ms=chance.choice([0, 700, 3000, 10_000]),
        max_reordered=chance.choice(SMALL),
        retain_unmatched=chance.random() < 0.8,
        max_models=chance.choice([1, 2, 3, 3]),
        comparisons=(comparisons := chance.choice(COMPARISONS)),
        carried=("sampling",) if len(comparisons) != 1 else (),  # without a draw
    )


PROBABILITIES = as_float32(0.05), 1.0
TOPICS = ("one", "other", "")
"""Of records; nobody says that of the last."""


def a_script(chance, length):
    """Events of few ids whose record times creep forward, with jitter, and now and then leap."""
    now = 0
    events = []
    fresh = chance.choice([1, 3, 10, 40])
    pace = chance.choice([100, 400, 1500])
    kinds = chance.choice([KINDS, KINDS, CALM])
    for kind in chance.choices(list(kinds), list(kinds.values()), k=length):
        now += chance.choice([0, pace, pace, 2 * pace, 2 * pace if chance.random() < 0.9 else 20 * pace])
        at = max(0, now + chance.choice([0, 0, -50, 400, -1200, 2000]))
        own = chance.choice([None, None, at, max(0, at - 900), at + 700])
        key = str(
            len(events) // fresh + (chance.randrange(3) if kind == "prediction" else -chance.randrange(4))
        )
        model, predicted_class = chance.choice("m" if kinds is CALM else "mmno"), chance.choice("xy")
        if kind == "prediction":
            events.append(Prediction(key, model, predicted_class, at, own, {"x": 0.5} if at % 2 else None))
            # Without a draw: what chance says of everything else stays as it was.
            events[-1].topic = TOPICS[at % 3]
            if at % 5 == 0:
                events[-1].label_probability = PROBABILITIES[at % 2]
                events[-1].label_requested = (None, False, True)[at % 3]
            if at % 3:
                events[-1].segments = {"country": str(at % 5)} | ({"channel": "web"} if at % 7 < 3 else {})
        elif kind == "label":
            events.append(Label(key, predicted_class, at, model, own, TOPICS[at % 3]))
        elif kind == "label for all":
            events.append(Label(key, predicted_class, at, None, own, TOPICS[at % 3]))
        elif kind == "time passes":
            events.append(tick(at))
        elif kind == "null":
            topic = chance.choice("ppl")
            of_model = chance.choice([None, model])
            events.append(NullRecord(topic, chance.choice([key, key, None]), of_model, at, topic == "p"))
        else:
            events.append(Invalid("p", 0, len(events), chance.choice(["invalid_json", "no_id"])))
    return clocked(events)


@st.composite
def cases(draw):
    """A spec and a script of any length up to 150; a failure shrinks towards a short one."""
    chance = Random(draw(st.integers(0, 2**32)))
    spec = replace(a_spec(chance), conflicts=draw(st.sampled_from(["first", "last", "both"])))
    return spec, a_script(chance, 150)[: draw(st.integers(100, 150) | st.integers(0, 150))]


def counted(stream):
    """The pipeline's counters and holdings, under the naive model's names."""
    holdings = stream.pipeline.join.holdings()
    return counts_of(stream.counters, list(holdings.models), holdings, stream.pipeline.clock_ms)


def counts_of(counters, models, holdings, clock_ms):
    """Counters, names of models, holdings and the clock, under the naive model's names."""
    counts = {
        "accepted": counters.predictions_accepted,
        "resolved": counters.predictions_resolved,
        "duplicate": counters.predictions_duplicate,
        "conflict": counters.predictions_conflict,
        "expired": counters.predictions_expired,
        "evicted": counters.predictions_evicted,
        "withdrawn": counters.predictions_withdrawn,
        "assumed": counters.outcomes_assumed,
        "released_early": counters.outcomes_released_early,
        "early": counters.labels_early,
        "negative_delay": counters.labels_negative_delay,
        "retained_evicted": counters.labels_retained_evicted,
        "dedup_entries_evicted": counters.dedup_entries_evicted,
        "over_limit": counters.models_over_limit,
        "wrong_fold": counters.predictions_wrong_fold,
        "pairs_made": counters.pairs_made,
        "pairs_differ": counters.pairs_labels_differ,
        "pairs_expired": counters.pairs_expired,
        "models": models,
        "pending": holdings.pending,
        "held": holdings.held,
        "early waiting": holdings.early,
        "retained": holdings.retained,
        "unmatched": holdings.unmatched,
        "dedup_entries": holdings.dedup_entries,
        "clock": clock_ms,
    }
    for form, labels in (("with", counters.with_model), ("without", counters.without_model)):
        for name in ("accepted", "joined", "orphaned", "duplicate", "corrected", "late", "withdrawn"):
            counts[f"{form}_{name}"] = getattr(labels, name)
        counts[f"{form}_evicted"] = labels.evicted_prediction
        counts[f"{form}_over_limit"] = labels.over_limit
        counts[f"{form}_dropped"] = labels.evicted
        counts[f"{form}_before_start"] = labels.before_start
    for topic, labels in counters.topic_labels.items():
        for name in ("accepted", "joined", "orphaned", "duplicate", "corrected", "late", "withdrawn"):
            counts["label on", topic, name] = getattr(labels, name)
        counts["label on", topic, "evicted"] = labels.evicted_prediction
        counts["label on", topic, "over_limit"] = labels.over_limit
        counts["label on", topic, "dropped"] = labels.evicted
        counts["label on", topic, "before_start"] = labels.before_start
    for topic, predictions in counters.topic_predictions.items():
        counts["made on", topic], counts["met on", topic] = predictions.accepted, predictions.joined
    for topic, count in counters.null_records.items():
        counts["null", topic] = count
    for model, count in counters.model_records_invalid.items():
        counts["invalid of", model] = count
    counts["wrong_fold"] = counters.predictions_wrong_fold
    for reasons in counters.records_invalid.values():
        for reason, count in reasons.items():
            counts["invalid", reason] = counts.get(("invalid", reason), 0) + count
    return counts


def naive_counted(naive):
    holdings = {
        "models": list(naive.models),
        "pending": len(naive.pending),
        "held": len(naive.order.held),
        "early waiting": len(naive.early),
        "retained": len(naive.kept),
        "unmatched": sum(not kept["met"] for kept in naive.kept),
        "dedup_entries": len(naive.dedup.entries()),
        "clock": naive.clock,
    }
    return {**naive.count, **holdings}


@settings(max_examples=examples(4))
@given(cases(), st.sampled_from([None, 0, 3000]))
def test_every_counter_and_outcome_equals_a_naive_join_after_every_event(case, start_ms):
    spec, events = case
    stream = Stream(spec)
    stream.pipeline.join.start_ms = start_ms
    naive = NaiveJoin(spec, start_ms)
    for event in events:
        stream.feed(event)  # asserts the identities
        naive.feed(event)
        ours, theirs = counted(stream), naive_counted(naive)
        assert {key: value for key, value in ours.items() if value} == {
            key: value for key, value in theirs.items() if value
        }
        assert stream.monitors.folded == naive.outcomes
        oldest = min(naive.pending, key=lambda p: p["due"], default=None)
        assert stream.pipeline.join.holdings().oldest_ms == (None if oldest is None else oldest["at"])
    assert stream.monitors.retired == naive.retired_after_outcomes()


@settings(max_examples=examples(2))
@given(cases(), st.data())
def test_results_do_not_depend_on_how_events_are_cut_into_batches(case, choose):
    spec, events = case
    one_by_one, in_batches = Stream(spec), Stream(spec)
    for event in events:
        one_by_one.feed(event)
    cuts = sorted(choose.draw(st.lists(st.integers(0, len(events)), max_size=4)))
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        if start < end:  # no batch is empty
            in_batches.feed(*events[start:end])
    assert in_batches.monitors.folded == one_by_one.monitors.folded
    assert in_batches.monitors.retired == one_by_one.monitors.retired
    assert in_batches.pipeline.snapshot() == one_by_one.pipeline.snapshot()
    assert alive(in_batches) == alive(one_by_one)


@settings(max_examples=examples(2))
@given(cases(), st.data())
def test_a_restored_pipeline_continues_bit_for_bit(case, choose):
    spec, events = case
    whole = Stream(spec)
    whole.feed(*events)
    cut = choose.draw(st.integers(0, len(events)))
    before = Stream(spec)
    before.feed(*events[:cut])
    snapshot = before.pipeline.snapshot()
    after = before.again()
    assert after.pipeline.snapshot() == snapshot
    after.feed(*events[cut:])
    assert after.pipeline.snapshot() == whole.pipeline.snapshot()
    assert after.monitors.folded == whole.monitors.folded
    assert after.monitors.retired == whole.monitors.retired
    assert alive(after) == alive(whole)
