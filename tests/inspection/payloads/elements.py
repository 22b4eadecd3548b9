"""Several predictions in one record."""

from __future__ import annotations

from tests.inspection.payloads.parts import batches
from tests.inspection.story import Maker, Payload, iso, story


def several_elements() -> Payload:
    found = Payload("two predictions in each record", cannot=("value.predictions[]", "up to 2"))
    for item in story(210, classes=("low", "high"), weights=(0.5, 0.5)):
        value = {"id": item.uuid, "predictions": [item.predicted, "low"]}
        found.add("batches", item.made_ms, value)
        found.add("seen", item.labelled_ms, {"id": item.uuid, "actual": item.true})
    return found


def results_of_a_batch() -> Payload:
    found = Payload(
        "one record for a job of many documents",
        predictions={
            "classified": {
                "id": "value.results[].doc_id",
                "model": "value.job.model",
                "prediction": "value.results[].category",
                "timestamp": "value.job.finished_at",
            }
        },
        labels={"corrections": {"id": "value.document", "label": "value.correct_category"}},
    )
    classes = ("invoice", "letter", "form")
    for number, calls in enumerate(batches(story(406, classes=classes, weights=(0.5, 0.3, 0.2)), (5, 1, 8))):
        results = [
            {"doc_id": item.uuid, "category": item.predicted, "pages": item.number % 9} for item in calls
        ]
        job = {"id": f"job-{number}", "model": "docs-2", "finished_at": iso(calls[-1].made_ms)}
        found.add("classified", calls[-1].made_ms, {"job": job, "results": results})
        for item in calls:
            found.add("corrections", item.labelled_ms, {"document": item.uuid, "correct_category": item.true})
    return found


def parallel_arrays() -> Payload:
    found = Payload(
        "ids and answers in arrays side by side, and an array of something else",
        predictions={"scored": {"id": "value.ids[]", "prediction": "value.answers[]"}},
        labels={"known": {"id": "value.id", "label": "value.answer"}},
    )
    for calls in batches(story(407, classes=("yes", "no"), weights=(0.5, 0.5)), (3, 2)):
        value = {
            "ids": [item.number + 5_000 for item in calls],
            "answers": [item.predicted for item in calls],
            "tags": ["a", "b", "c", "d"][: 1 + calls[0].number % 4],
        }
        found.add("scored", calls[0].made_ms, value)
        for item in calls:
            found.add("known", item.labelled_ms, {"id": item.number + 5_000, "answer": item.true})
    return found


def list_of_candidates() -> Payload:
    found = Payload(
        "candidates by rank: the first is the prediction",
        predictions={
            "tagger": {"id": "value.id", "prediction": "value.candidates[0].label"},
        },
        labels={"gold": {"id": "value.id", "label": "value.label"}},
        cannot=("value.candidates", "up to 3"),
    )
    classes = ("sport", "politics", "culture")
    for item in story(410, classes=classes, weights=(0.4, 0.4, 0.2)):
        others = [name for name in classes if name != item.predicted]
        ranked = [
            {"label": name, "p": p}
            for name, p in zip((item.predicted, *others), (item.score, 0.1, 0.05), strict=True)
        ]
        found.add("tagger", item.made_ms, {"id": item.uuid, "candidates": ranked})
        found.add("gold", item.labelled_ms, {"id": item.uuid, "label": item.true})
    return found


def array_at_the_top() -> Payload:
    found = Payload(
        "the value is an array, the id of the request its key",
        predictions={"lists": {"id": "key", "prediction": "value[].class"}},
        labels={"answers": {"id": "value.ref", "label": "value.actual"}},
    )
    for calls in batches(story(417, classes=("a", "b"), weights=(0.5, 0.5)), (2, 1, 3)):
        value = [{"class": item.predicted, "p": item.score} for item in calls]
        found.add("lists", calls[0].made_ms, value, key=f"req-{calls[0].number}")
        for at, item in enumerate(calls):
            value = {"ref": f"req-{calls[0].number}#{at}", "actual": item.true}
            found.add("answers", item.labelled_ms, value)
    return found


def nested_results() -> Payload:
    found = Payload(
        "one outer element, whose inner array has an element for each item",
        predictions={
            "ocr": {
                "id": "value.pages[0].lines[].line_id",
                "prediction": "value.pages[0].lines[].kind",
            }
        },
        labels={"ocr-checked": {"id": "value.line_id", "label": "value.kind"}},
    )
    kinds = ("heading", "text", "footer")
    for calls in batches(story(419, classes=kinds, weights=(0.2, 0.6, 0.2)), (3, 5)):
        lines = [{"line_id": item.uuid, "kind": item.predicted} for item in calls]
        found.add("ocr", calls[0].made_ms, {"scan": calls[0].user, "pages": [{"no": 1, "lines": lines}]})
        for item in calls:
            found.add("ocr-checked", item.labelled_ms, {"line_id": item.uuid, "kind": item.true})
    return found


ELEMENTS: tuple[Maker, ...] = (
    several_elements,
    results_of_a_batch,
    parallel_arrays,
    list_of_candidates,
    array_at_the_top,
    nested_results,
)
