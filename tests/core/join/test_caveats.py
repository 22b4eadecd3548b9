"""What is to be known beside a verdict: quick labels only, labels assumed; the same after a restart."""

from __future__ import annotations

import pytest

from streamwatch.core.join.caveats import Caveats, details_with_caveats, labels_are_in
from streamwatch.core.metrics.series import Family, Histogram
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, label, predict, tick

BEGAN = 5_000


def test_until_the_first_prediction_is_one_horizon_old_only_quick_labels_are_in():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict("1", at=BEGAN), label("1", at=BEGAN + 1), predict("2", at=BEGAN + DAY - 1))
    young = Caveats(BEGAN + DAY, None, predictions=2, labelled=1, waiting=1, watched_ms=DAY - 1)
    assert stream.pipeline.caveats() == {"m": young}
    stream.feed(tick(BEGAN + DAY))
    assert stream.pipeline.caveats() == {}


def test_each_model_has_a_first_horizon_of_its_own():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict("1", at=0, model="old"), predict("2", at=BEGAN, model="new"), tick(DAY))
    assert stream.pipeline.caveats() == {
        "new": Caveats(BEGAN + DAY, None, predictions=1, waiting=1, watched_ms=DAY - BEGAN)
    }


def test_the_caveat_of_assumed_labels_lasts():
    stream = Stream(JoinSpec(horizon_ms=DAY, assume="legit"))
    stream.feed(predict("1", at=0), predict("2", at=DAY - 1))
    young = Caveats(DAY, "legit", predictions=2, waiting=2, watched_ms=DAY - 1)
    assert stream.pipeline.caveats() == {"m": young}
    stream.feed(tick(DAY + BEGAN))
    assert stream.pipeline.caveats() == {"m": Caveats(None, "legit")}


def test_a_restart_knows_when_the_first_prediction_was():
    spec = JoinSpec(horizon_ms=DAY)
    stream = Stream(spec)
    stream.feed(predict("1", at=BEGAN), tick(2 * BEGAN))
    again = stream.again().pipeline
    young = Caveats(BEGAN + DAY, None, predictions=1, waiting=1, watched_ms=BEGAN)
    assert again.caveats() == stream.pipeline.caveats() == {"m": young}


def test_the_api_shows_them_beside_a_models_other_details():
    details = details_with_caveats(
        {"m": {"classes": ["a"]}, "n": {}},
        {"m": Caveats(1_500, "legit", 1_829, 424), "unseen": Caveats(1, None, 3)},
    )
    assert details == {
        "m": {
            "classes": ["a"],
            "first_horizon_ends_timestamp_seconds": 1.5,
            "first_horizon_predictions": 1_829,
            "first_horizon_labelled": 424,
            "labels_assumed_as": "legit",
        },
        "n": {},
        "unseen": {  # predictions only
            "first_horizon_ends_timestamp_seconds": 0.001,
            "first_horizon_predictions": 3,
            "first_horizon_labelled": 0,
        },
    }


def test_that_all_quick_labels_are_of_one_class_is_reported():
    young = {"m": Caveats(1_500, None, 1_829, 424)}

    def only(*counts: list[float]) -> object:
        confusion = {"forgetting": "fading:0.999", "classes": ["fraud", "legit"], "counts": list(counts)}
        return details_with_caveats({"m": {"confusion": confusion}}, young)["m"].get(
            "first_horizon_only_label"
        )

    assert only([400.0, 24.0], [0.0, 0.0]) == "fraud"
    assert only([400.0, 23.0], [0.0, 1.0]) is None
    assert "first_horizon_only_label" not in details_with_caveats({"m": {}}, young)["m"]


BOUNDS = (1.0, 60.0, 3_600.0)
HOUR = 3_600_000


def watched(labelled: int, waiting: int, hours: float = 2.0) -> Caveats:
    predictions = labelled + waiting
    return Caveats(14 * DAY, None, predictions, labelled, waiting, round(hours * HOUR))


@pytest.mark.parametrize(
    ("why", "caveat", "counts", "are_in"),
    [
        ("labels within a minute, and only the newest wait", watched(990, 10), (500, 990, 990, 990), True),
        ("a few labels never come", watched(950, 50), (500, 950, 950, 950), True),
        ("most predictions still wait: slow labels may come", watched(300, 700), (200, 300, 300, 300), False),
        ("a tenth still waits", watched(890, 110), (500, 890, 890, 890), False),
        ("labels take as long as the model is watched", watched(990, 10), (0, 10, 990, 990), False),
        ("watched ten times as long as the slowest", watched(990, 10, 1 / 6), (500, 990, 990, 990), True),
        ("watched for a few minutes only", watched(990, 10, hours=0.1), (500, 990, 990, 990), False),
        ("labels take longer than the last bucket", watched(990, 10), (0, 0, 0, 990), False),
        ("too few labels", watched(29, 0), (29, 29, 29, 29), False),
        ("no label", watched(0, 9), (0, 0, 0, 0), False),
    ],
)
def test_observed_delays_show_whether_only_quick_labels_are_in(why, caveat, counts, are_in):
    assert labels_are_in(caveat, Histogram(counts, 1.0), BOUNDS) is are_in, why


def test_a_model_whose_labels_are_in_has_no_first_horizon_and_others_keep_theirs():
    quick = Family(
        "label_delay_seconds",
        "histogram",
        "h",
        ("model",),
        [(("m",), Histogram((500, 990, 990, 990), 1.0))],
        BOUNDS,
    )
    caveats = {"m": watched(990, 10), "n": watched(990, 10)}
    details = details_with_caveats({}, caveats, [quick])
    assert details["m"] == {}
    assert details["n"]["first_horizon_labelled"] == 990
