"""`check` decodes the first records of each topic, and says what to write where classes are scores."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from streamwatch.admin.kafka_check import SAMPLE_RECORDS, CheckResult, check_ids, check_payload, first_records
from streamwatch.core.records.events import Label, Prediction
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder, read_json
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.trees import TreeDecoder, sided
from tests.daemon.fake_daemon import FakeSource, label, poll, prediction
from tests.edge.decoders.records import FakeRecord, of

DECODER = JsonDecoder(DecoderSpec("p", "prediction", TopicMapping()))


def records(classes: list[object]) -> list[FakeRecord]:
    return [of({"id": n, "model": "m", "prediction": name}) for n, name in enumerate(classes)]


def test_what_the_mapping_makes_of_a_sample_is_counted_with_the_reasons() -> None:
    sample = [*records(["a", "b", None]), FakeRecord(b"{"), FakeRecord(None)]
    result = check_payload("p", "value.prediction", sample, DECODER)
    assert result.good
    assert result.what == "topic p: 2 predictions, 2 invalid in the first 5 records"
    assert result.details == (
        (
            "1 × missing_prediction: has no predicted class where the mapping looks for it "
            "(value.prediction is null)"
        ),
        "1 × invalid_json: is not JSON (NaN is none), is nested too deeply, or has a number out of range",
    )


def test_predictions_whose_label_is_asked_for_with_a_probability_are_counted() -> None:
    mapping = TopicMapping(label_probability="value.pi", min_label_probability=0.1)
    decoder = TreeDecoder("p", sided("prediction", mapping), read_json)
    contents = [{"id": 1, "model": "m", "prediction": "a", "pi": pi} for pi in (0.5, 1, None, 0.05)]
    result = check_payload("p", "value.prediction", [of(content) for content in contents], decoder)
    assert result.what == (
        "topic p: 3 predictions, 2 predictions with a label probability, 1 invalid in the first 4 records"
    )


def test_a_sample_in_which_nothing_is_valid_is_a_fault_and_an_empty_topic_is_none() -> None:
    assert not check_payload("p", "value.prediction", [FakeRecord(b"{")], DECODER).good
    assert check_payload("p", "value.prediction", [], DECODER).good
    assert check_payload("p", "value.prediction", [FakeRecord(None)], DECODER).good


def test_times_in_seconds_that_are_read_as_milliseconds_are_a_fault() -> None:
    def dated(*times: int) -> CheckResult:
        sample = [of({"id": n, "model": "m", "prediction": "a", "timestamp": t}) for n, t in enumerate(times)]
        return check_payload("p", "value.prediction", sample, DECODER)

    found = dated(1_796_049_000, 1_796_049_060)
    assert not found.good
    [detail] = found.details
    assert detail.startswith("its times are read as of 1970-01-21: probably they are seconds")
    assert "change timestamp_unit in its mapping" in detail
    assert dated(1_796_049_000_000, 1_796_049_060).good
    assert dated(0, 60_000).good


def test_timestamps_of_kafka_in_seconds_are_a_fault() -> None:
    def dated(record_ms: int) -> CheckResult:
        sample = [replace(each, timestamp=record_ms) for each in records(["a", "b"])]
        return check_payload("p", "value.prediction", sample, DECODER)

    found = dated(1_796_049_000)
    assert not found.good
    [detail] = found.details
    assert detail.startswith("Kafka's timestamps of 2 of its records are of 1970-01-21: probably what writes")
    assert dated(1_796_049_000_000).good
    assert dated(1).good


def test_scores_instead_of_classes_are_a_fault_with_what_to_write_instead() -> None:
    chance = random.Random(1)
    scores: list[object] = [round(chance.random(), 4) for _ in range(30)]
    result = check_payload("p", "value.prediction", records([*scores, 1, 0]), DECODER)
    assert not result.good
    [detail] = result.details
    assert detail.startswith("predicted classes are scores (0.1344, 0.8474, 0.7638, 0.2551, 0.4954, …)")
    assert "write prediction: {score: value.prediction, threshold: 0.5, above: fraud, below: legit}" in detail


def test_classes_that_are_a_few_numbers_are_no_fault() -> None:
    assert check_payload("p", "value.prediction", records([0.5, 1, 1.5, 2] * 20), DECODER).good
    assert check_payload("p", "value.prediction", records(list(range(100))), DECODER).good


async def test_the_first_records_of_each_topic_are_read_and_no_more_than_asked_for() -> None:
    source = FakeSource(
        [
            poll(*(prediction(n) for n in range(60)), caught_up=False),
            poll(*(prediction(n) for n in range(60, 150)), label(0), caught_up=False),
            poll(label(1)),
        ]
    )
    found = await first_records(source, ["predictions", "labels"])
    assert [record.offset for record in found["predictions"]] == list(range(SAMPLE_RECORDS))
    assert [record.offset for record in found["labels"]] == [0, 1]
    assert source.stopped


def test_a_model_that_repeats_ids_is_a_fault_with_what_to_map() -> None:
    sample = [of({"id": n // 2, "model": "m", "prediction": "ab"[n % 2]}) for n in range(40)]
    result = check_payload("p", "value.prediction", sample, DECODER)
    assert not result.good
    (shown,) = result.details
    assert shown.startswith(
        "model m repeats ids in 50.0% of its predictions (20 of 40, 20 with another class)"
    )
    assert "mapping: {model: [path of the name, path of the version]}" in shown
    assert check_payload("p", "value.prediction", sample, DECODER, revised=True).good


def of_both_sides(predicted: list[str], labelled: list[str]) -> list[Prediction | Label]:
    return [
        *(Prediction(id_, "m", "a", 0) for id_ in predicted),
        *(Label(id_, "a", 0) for id_ in labelled),
    ]


NUMBERS = [str(number) for number in range(1_000, 1_100)]


def test_labels_of_a_sample_that_meet_predictions_are_counted() -> None:
    found = check_ids(of_both_sides(NUMBERS, NUMBERS[70:] + ["later"] * 5))
    assert found is not None
    assert (found.good, found.what) == (True, "ids: 30 of 31 labels in the samples meet a prediction")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ([f"txn-{number}" for number in NUMBERS], "txn-"),
        ([f"{number}.json" for number in NUMBERS], ".json"),
    ],
)
def test_ids_that_would_meet_but_for_what_one_side_adds_are_a_fault(written: list[str], shown: str) -> None:
    found = check_ids(of_both_sides(written, NUMBERS))
    assert found is not None
    assert not found.good
    assert found.what == "ids: none of 100 labels in the samples meets one of 100 predictions"
    assert shown in found.details[0]
    assert found.details[-1] == "streamwatch inspect proposes a mapping"


def test_ids_of_another_time_are_no_fault_and_reported_with_one_of_each_side() -> None:
    found = check_ids(of_both_sides(NUMBERS, [str(number) for number in range(5_000, 5_100)]))
    assert found is not None
    assert found.good
    [reported] = found.details
    assert reported.startswith("a prediction's id is '1000', a label's '5000': they may be of another time; ")


def test_of_few_ids_nothing_is_shown() -> None:
    assert check_ids(of_both_sides(NUMBERS, NUMBERS[:9])) is None
    assert check_ids(of_both_sides([], NUMBERS)) is None


def test_ids_that_are_no_plain_text_are_no_fault() -> None:
    found = check_ids(of_both_sides([f"\x95{number}\x0f" for number in NUMBERS], NUMBERS))
    assert found is not None
    assert found.good
