"""When the records of a synthetic stream are due, and what they say."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import msgspec
import pytest

from streamwatch.core.records.events import Label, Prediction
from streamwatch.demo.simulate import ScheduleSpec, schedule
from streamwatch.demo.simulated import DelaySpec, StreamSpec
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping

START_MS = 1_700_000_000_000


def laid_out(**changed):
    values = {
        "stream": StreamSpec(seed=5, delay=DelaySpec(median_s=10.0, never=0.2)),
        "rate": 50.0,
        "start_ms": START_MS,
        "run": "r",
        "instances": 500,
    }
    return list(schedule(ScheduleSpec(**{**values, **changed})))


def test_every_instance_has_one_prediction_per_model_and_at_most_one_label():
    records = laid_out()
    predictions = Counter(r.key for r in records if r.side == "prediction")
    labels = Counter(r.key for r in records if r.side == "label")
    assert set(predictions.values()) == {3}
    assert len(predictions) == 500
    assert set(labels.values()) == {1}
    assert len(labels) == pytest.approx(400, abs=30)


def test_records_come_in_the_order_they_are_due_at_a_steady_rate():
    records = laid_out()
    assert [r.at_s for r in records] == sorted(r.at_s for r in records)
    starts = [r.at_s for r in records if r.side == "prediction"][::3]
    assert starts == [i / 50.0 for i in range(500)]


def test_a_label_comes_after_its_prediction_by_a_delay_of_the_distribution():
    due = {"prediction": {}, "label": {}}
    for record in laid_out():
        due[record.side].setdefault(record.key, record.at_s)
    delays = sorted(due["label"][key] - due["prediction"][key] for key in due["label"])
    assert delays[0] > 0.0
    assert delays[len(delays) // 2] == pytest.approx(10.0, rel=0.2)


def test_a_time_scale_divides_the_delays_and_leaves_the_rate():
    plain, scaled = laid_out(), laid_out(time_scale=10.0)
    last = max(r.at_s for r in plain if r.side == "prediction")
    assert last == max(r.at_s for r in scaled if r.side == "prediction")
    label_of = [{r.instance: r.at_s for r in records if r.side == "label"} for records in (plain, scaled)]
    assert label_of[0].keys() == label_of[1].keys()
    for instance, at_s in label_of[0].items():
        assert label_of[1][instance] - instance / 50.0 == pytest.approx((at_s - instance / 50.0) / 10.0)


def test_equal_specs_give_equal_bytes():
    assert laid_out() == laid_out()


def test_records_decode_with_the_default_mapping():
    decoders = {
        side: JsonDecoder(DecoderSpec(side, side, TopicMapping())) for side in ("prediction", "label")
    }
    for record in laid_out(scores=True)[:300]:
        carrier = SimpleNamespace(
            topic=record.side,
            partition=0,
            offset=0,
            timestamp=0,
            key=record.key,
            value=record.value,
            headers=(),
        )
        event = decoders[record.side].decode(carrier, 1)
        assert type(event) is (Prediction if record.side == "prediction" else Label)
        assert event.id == record.key.decode() == f"r-{record.instance}"
        assert event.timestamp_ms == START_MS + round(record.at_s * 1000)
        if record.side == "prediction":
            assert event.scores is not None
            assert max(event.scores, key=event.scores.__getitem__) == event.predicted_class


def test_without_scores_records_carry_none():
    assert all("scores" not in msgspec.json.decode(r.value) for r in laid_out()[:50])


def test_a_seed_that_no_generator_takes_is_refused_before_the_stream_begins():
    with pytest.raises(ValueError, match=r"^a seed must be at least 0, got -1$"):
        StreamSpec(seed=-1)
