"""Repeated predictions of a sample: which models have many, and what counts as one."""

from __future__ import annotations

from streamwatch.core.join.caveats import RepeatedModel, Repeats
from streamwatch.core.records.events import Prediction


def predict(model: str, id_: object, predicted_class: str = "a") -> Prediction:
    return Prediction(str(id_), model, predicted_class, 0)


def test_a_model_that_predicts_every_id_twice_is_found_with_its_conflicts() -> None:
    repeats = Repeats()
    for number in range(100):
        repeats.add(predict("m", number))
        repeats.add(predict("m", number, "b" if number < 20 else "a"))
        repeats.add(predict("other", number))
    assert repeats.many() == [RepeatedModel("m", 200, 100, 20)]
    assert repeats.many(revised=True) == [RepeatedModel("m", 200, 80, 0)]
    assert repeats.many()[0].summary == (
        "repeats ids in 50.0% of its predictions (100 of 200, 20 with another class): one of each id counts"
    )
    assert "all with the same class" in repeats.many(revised=True)[0].summary


def test_one_in_a_hundred_and_single_ones_of_a_small_sample_are_no_matter() -> None:
    repeats = Repeats()
    for number in range(297):
        repeats.add(predict("m", number))
    for number in range(3):
        repeats.add(predict("m", number))
    for number in (1, 2, 2, 1):
        repeats.add(predict("few", number))
    assert repeats.many() == []
    repeats.add(predict("m", 0))
    repeats.add(predict("few", 1))
    assert [each.model for each in repeats.many()] == ["few", "m"]


def test_revised_predictions_alone_are_no_repeats_where_they_are_meant() -> None:
    repeats = Repeats()
    for number in range(50):
        repeats.add(predict("m", number, "a"))
        repeats.add(predict("m", number, "b"))
    assert repeats.many(revised=True) == []
