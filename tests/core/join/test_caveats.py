"""What is to be known beside a verdict: quick labels only, labels assumed; the same after a restart."""

from __future__ import annotations

from streamwatch.core.join.caveats import Caveats, details_with_caveats
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, RecordingEstimatorSet, Stream, label, predict, tick

BEGAN = 5_000


def test_until_the_first_prediction_is_one_horizon_old_only_quick_labels_are_in():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict("1", at=BEGAN), label("1", at=BEGAN + 1), predict("2", at=BEGAN + DAY - 1))
    assert stream.pipeline.caveats() == {"m": Caveats(BEGAN + DAY, None)}
    stream.feed(tick(BEGAN + DAY))
    assert stream.pipeline.caveats() == {}


def test_each_model_has_a_first_horizon_of_its_own():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict("1", at=0, model="old"), predict("2", at=BEGAN, model="new"), tick(DAY))
    assert stream.pipeline.caveats() == {"new": Caveats(BEGAN + DAY, None)}


def test_that_labels_are_assumed_is_said_for_good():
    stream = Stream(JoinSpec(horizon_ms=DAY, assume="legit"))
    stream.feed(predict("1", at=0), predict("2", at=DAY - 1))
    assert stream.pipeline.caveats() == {"m": Caveats(DAY, "legit")}
    stream.feed(tick(DAY + BEGAN))
    assert stream.pipeline.caveats() == {"m": Caveats(None, "legit")}


def test_a_restart_knows_when_the_first_prediction_was():
    spec = JoinSpec(horizon_ms=DAY)
    stream = Stream(spec)
    stream.feed(predict("1", at=BEGAN), tick(2 * BEGAN))
    again = Pipeline(spec, RecordingEstimatorSet())
    again.restore(stream.pipeline.snapshot())
    assert again.caveats() == stream.pipeline.caveats() == {"m": Caveats(BEGAN + DAY, None)}


def test_the_api_shows_them_beside_a_models_other_details():
    told = details_with_caveats(
        {"m": {"classes": ["a"]}, "n": {}}, {"m": Caveats(1_500, "legit"), "unseen": Caveats(1, None)}
    )
    assert told == {
        "m": {
            "classes": ["a"],
            "first_horizon_ends_timestamp_seconds": 1.5,
            "labels_assumed_as": "legit",
        },
        "n": {},
        "unseen": {"first_horizon_ends_timestamp_seconds": 0.001},  # predictions only
    }
