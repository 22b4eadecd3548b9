"""Mistakes that make no noise, seen from outside: events once, series and details while they last."""

from __future__ import annotations

import json

from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.history import HistoryExporter
from streamwatch.edge.web.routes.json_api import JsonExporter
from streamwatch.edge.web.routes.overview import OverviewExporter
from tests.core.join.shelf import ColumnShelf
from tests.daemon.fake_daemon import (
    NOW_MS,
    FakeDaemon,
    Record,
    fake_daemon,
    label,
    only_samples,
    poll,
    prediction,
    taken,
)

HOUR = 3_600_000
BASE_MS = NOW_MS - 3 * HOUR


def report(h: FakeDaemon):
    slices = h.processor.report_in_slices()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value


def reported(h: FakeDaemon):
    lines = [json.loads(line) for line in h.log.getvalue().splitlines()]
    return [line for line in lines if line["event"] in {"classes_disjoint", "nothing_joins"}]


async def test_classes_with_nothing_in_common_are_reported_once_with_examples_and_shown_while_it_lasts():
    h = fake_daemon()
    predicted = [prediction(n, "10"[n % 2], BASE_MS + n) for n in range(120)]
    await taken(h.processor, poll(*predicted, *(label(n, "fraud", BASE_MS + 200 + n) for n in range(110))))
    for _ in range(2):
        made = report(h)
        assert only_samples(made.families, "classes_disjoint") == [(("m",), 1)]
        disjoint = {"predicted_class": ["1", "0"], "true": ["fraud"]}
        assert made.details["m"]["classes_disjoint"] == disjoint
    (line,) = reported(h)
    assert (line["model"], line["predicted_class"], line["true"]) == ("m", ["1", "0"], ["fraud"])
    await taken(
        h.processor, poll(prediction(200, "fraud", BASE_MS + 400), label(110, "fraud", BASE_MS + 500))
    )
    await taken(h.processor, poll(label(200, "fraud", BASE_MS + 600)))
    made = report(h)
    assert only_samples(made.families, "classes_disjoint") == []
    assert "classes_disjoint" not in made.details["m"]


async def test_a_model_that_meets_no_label_is_reported_though_it_has_no_estimates():
    h = fake_daemon()
    await taken(h.processor, poll(*(prediction(n, record_ms=BASE_MS) for n in range(3))))
    assert reported(h) == []
    stray = Record("labels", 0, 0, BASE_MS + HOUR, b'{"id": "id-1", "label": "a"}')
    await taken(h.processor, poll(prediction(9, record_ms=BASE_MS + HOUR), stray))
    made = report(h)
    assert only_samples(made.families, "nothing_joins") == [(("m",), 1)]
    assert made.details["m"]["nothing_joins"] == {"predictions": 4}
    assert [(line["event"], line["model"], line["predictions"]) for line in reported(h)] == [
        ("nothing_joins", "m", 4)
    ]


async def test_a_model_whose_predictions_wait_has_its_row_its_page_and_its_reason_before_anything_is_wrong():
    h = fake_daemon()
    await taken(h.processor, poll(*(prediction(n, record_ms=BASE_MS) for n in range(3))))
    made = report(h)
    assert reported(h) == []
    ends = made.details["m"]["first_horizon_ends_timestamp_seconds"]
    assert ends == (BASE_MS + h.processor.pipeline._spec.horizon_ms) / 1000
    history = HistoryExporter()
    history.observe(made)
    asked = [
        (OverviewExporter(), {}),
        (JsonExporter(), {"model": "m"}),
        (history, {"model": "m"}),
    ]
    overview, model, past = (json.loads(exporter.render(Asked(made, asked))) for exporter, asked in asked)
    row = overview["models"]["m"]
    assert row["waiting"] == "no label has matched any of 3 predictions yet"
    assert (row["verdict"], row["trouble"], row["pending"]) == ("open", "open", 3)
    assert row["first_horizon_ends_timestamp_seconds"] == ends
    assert model["metrics"]["pending_predictions"] == 3
    assert past["series"]["pending_predictions"] == [3]
    await taken(h.processor, poll(label(0, record_ms=BASE_MS + 5)))
    made = report(h)
    assert "waiting" not in json.loads(OverviewExporter().render(Asked(made)))["models"]["m"]


async def test_records_and_invalid_ones_are_counted_by_topic_and_survive_a_restore():
    h = fake_daemon()
    broken = Record("labels", 0, 1, BASE_MS, b"{")
    await taken(
        h.processor,
        poll(
            prediction(0, record_ms=BASE_MS),
            prediction(1, record_ms=BASE_MS),
            label(0, record_ms=BASE_MS),
            broken,
        ),
    )
    families = report(h).families
    assert dict(only_samples(families, "records_evaluated_total")) == {
        ("labels",): 2.0,
        ("predictions",): 2.0,
    }
    assert only_samples(families, "records_invalid_total") == [(("invalid_json", "labels"), 1)]
    progress = h.processor.progress
    assert (
        type(progress).restored(progress.state(), ["labels", "predictions"]).evaluated == progress.evaluated
    )
    pipeline = h.processor.pipeline
    other = Pipeline(pipeline._spec, pipeline._monitors, digest_bytes)
    shelf = ColumnShelf()
    shelf.commit(pipeline)
    shelf.restored(other)
    assert other.join.counters.records_invalid == {"labels": {"invalid_json": 1}}
