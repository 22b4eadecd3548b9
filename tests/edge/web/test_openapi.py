"""The API's description is true: every route is in it, and every answer is as it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

import aiohttp
import numpy as np
import pytest
from jsonschema import Draft202012Validator
from msgspec import structs

from streamwatch.assembly.http import ROUTES, build_server
from streamwatch.core.estimators.names import Batch, Classes, Slice
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabels, LateLabelsSpec
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import Report
from streamwatch.core.predictions.early_hints import EarlyHints, EarlyHintsSpec
from streamwatch.core.predictions.kind import batch_of
from streamwatch.core.predictions.label_delays import LabelDelays, LabelDelaysSpec
from streamwatch.core.predictions.sampled_labels import SampledLabelsSpec
from streamwatch.core.predictions.sampled_labels.register import SampledLabels
from streamwatch.core.records.events import ErrorChange, Outcome, Prediction
from streamwatch.edge.web.openapi import document, path_of
from streamwatch.settings.http import HttpSection
from streamwatch.telemetry import Telemetry
from tests.edge.web.exposition import realistic
from tests.edge.web.http_faces import BEGAN_MS, FakeHealth, Model, alarm, report_of, serving
from tests.edge.web.test_trouble import changed_verdict, with_open_alarm
from tests.layouts import DEFAULT, TINY

DESCRIBED = document(ROUTES)


def late_labels() -> object:
    """Late labels of a model whose error changed, as estimators give them."""
    register = LateLabels(LateLabelsSpec(100_000), 1)
    known = [(t * 50, (t * 37) % 300, t % (12 if t < 5_000 else 2) > 0) for t in range(6_000)]
    hits = np.array([hit for _, _, hit in known])
    times = np.array([(at + delay, delay) for at, delay, _ in known], np.int64)
    zeros = np.zeros(len(known), np.int32)
    scarce = np.zeros(len(known), np.bool_)
    outcomes: list[Outcome] = []
    known_ms, delays_ms = times.T
    made = np.arange(len(known), dtype=np.uint32)
    columns = hits * 1, zeros + 1, zeros, known_ms, delays_ms, scarce, made, known_ms, delays_ms
    register.observe(Batch(outcomes, zeros, *columns))
    classes = Classes(2)
    classes["a"] = 0
    reported = register.details([Slice("m", 0, classes)])(0)["late_labels"]
    assert isinstance(reported, dict)
    assert {"settled", "delay_corrected", "naive", "bias", "share_labelled", "change"} < reported.keys()
    return reported


PATHS = sorted(DESCRIBED["paths"])
EXAMPLES = {"model": "model-1", "champion": "model-1", "challenger": "model-2", "file": "main.js"}
QUERIES = {
    "since": "1.5",
    "forgetting": "landmark",
    "limit": "2",
    "model": "model-1",
    "share": ".5",
    "sort": "accuracy",
    "order": "descending",
    "filter": "MODEL",
    "prefix": "model-",
    "label": "team=payments",
    "group": "0",
    "first": "0",
    "rows": "7",
    "details": "1",
    "lines": "1",
}


OWNED = {"labels": {"team": "payments"}, "runbook_url": "https://wiki.example.com/model"}
"""What the settings say of a model."""


def about_scores() -> object:
    """What a model's probabilities say, some of it undefined."""
    spec = replace(TINY, registers=(ProbabilitiesSpec(),))
    estimators = EstimatorSet(spec)
    estimators.fold([Outcome("m", "a", "a", 0, 0, scores={"a": 0.75, "b": 0.25})])
    return estimators.details()["m"]["probabilities"]


def about_predictions() -> Mapping[str, object]:
    """What a model's predictions say, with a hint and a stretch, some of it undefined."""
    watch = EarlyHints(EarlyHintsSpec())
    scores = {"a": 0.75, "b": 0.25}
    watch.observe(
        batch_of([Prediction(str(i), "m", "ab"[i > 8_000], i, scores=scores) for i in range(9_000)])
    )
    assert watch.views()["m"].hint is not None
    return watch.details()["m"]


def about_delays() -> Mapping[str, object]:
    """Share labelled by age of a model half of whose predictions have their labels."""
    delays = LabelDelays(LabelDelaysSpec(64_000))
    delays.observe(batch_of([Prediction(str(i), "m", "ab"[i % 2], i) for i in range(100)]))
    delays.learn([Outcome("m", "a", "a", i + 500, 500) for i in range(0, 100, 2)])
    delays.observe(batch_of([Prediction("last", "m", "a", 30_000)]))
    return delays.details()["m"]


def about_sampled() -> Mapping[str, object]:
    """Sampled labels of a model that is right in four of five predictions."""
    register = SampledLabels(SampledLabelsSpec(16_000))
    for first in range(0, 6_000, 100):
        made = range(first, first + 100)
        register.observe(
            batch_of([Prediction(str(i), "m", "a", i * 10, label_probability=0.5) for i in made])
        )
        known = Outcome("m", "a", "a", 0, 0, label_at_prediction="b", label_probability=0.5)
        register.learn(
            [
                structs.replace(known, true_class="ab"[i % 5 == 0], event_ms=i * 10, resolved_ms=i * 10)
                for i in made[1::2]
            ]
        )
    return register.details()["m"]


def about_revisions() -> object:
    """First and last predictions of a model, some of them revised."""
    estimators = EstimatorSet(replace(TINY, registers=(RevisionsSpec(),)))
    estimators.fold([Outcome("m", "a", "ab"[i % 2], i, i, last_class="a") for i in range(60)])
    return estimators.details()["m"]["revisions"]


def about_cohorts() -> object:
    """Verdicts by cohorts of a model that is always right, in the order of predictions."""
    estimators = EstimatorSet(replace(TINY, registers=(CohortsSpec(16_000, by_prediction=True),)))
    estimators.fold(
        [
            Outcome("m", "ab"[i % 2], "ab"[i % 2], i, 0, label_at_prediction="a", made=i, resolved_ms=i * 40)
            for i in range(4_000)
        ]
    )
    found = estimators.details()["m"]["cohorts"]
    assert isinstance(found, dict)
    assert found["opponents"]["majority"]["status"] == "confirmed"
    return found


def about_recovery() -> object:
    """A drift that ended, and one that is under way."""
    estimators = EstimatorSet(DEFAULT)
    wrong = [i in range(2_000, 2_500) or i >= 7_000 for i in range(7_200)]
    estimators.fold([Outcome("m", "ab"[i % 2], "ab"[(i + w) % 2], i, i) for i, w in enumerate(wrong)])
    found = estimators.details()["m"]["recovery"]
    assert isinstance(found, dict)
    assert set(found) == {"forgetting", "under_way", "last"}
    return found


def everything() -> Report:
    """With all that a report can hold."""
    return Report(
        realistic(),
        BEGAN_MS,
        {
            "model-1": {
                "classes": ["a"],
                "first_seen_timestamp_seconds": 1.5,
                "confusion": {"forgetting": "fading:0.999", "classes": ["a"], "counts": [[2.5]]},
                "probabilities": about_scores(),
                **about_predictions(),
                **about_delays(),
                **about_sampled(),
                "folds": {"landmark": {"0": 0.5, "1": 0.75}, "fading:0.999": {"0": 0.25, "1": 0.5}},
                "late_labels": late_labels(),
                "revisions": about_revisions(),
                "cohorts": about_cohorts(),
                "recovery": about_recovery(),
                "utility": "costs",
                "first_horizon_ends_timestamp_seconds": 2.5,
                "first_horizon_predictions": 1_829,
                "first_horizon_labelled": 424,
                "first_horizon_only_label": "fraud",
                "evaluation_since_timestamp_seconds": 3.5,
                "evaluation_changed": "topics.labels[labels].mapping.classes, monitors.utility",
                "evaluation_outcomes_before": 1_829,
                "evaluation_began_anew": True,
                "estimators_since_timestamp_seconds": {"page_hinkley": 3.5},
            },
            **{
                name: {
                    "folds": {
                        "landmark": {"0": accuracy, "1": 0.5},
                        "fading:0.999": {"0": accuracy, "1": 0.5},
                    }
                }
                for name, accuracy in (("model-2", 0.5), ("model-3", 0.75))
            },
        },
        [
            alarm("model-1"),
            alarm("model-1", 2, statistic=float("inf")),
            alarm("model-1", 3, predictions=ErrorChange(3, 2, 4, 0.1, 0.2)),
            alarm("model-1", 4, predicted_ms=1_700_000_000_000),
        ],
    )


REPORTS: dict[str, Callable[[], Report | None]] = {
    "before the first report": lambda: None,
    "with everything of the catalogue": everything,
    "with little": lambda: report_of({"model-1": Model()}),
    "with trouble": lambda: with_open_alarm(
        replace(
            report_of({"model-1": Model()}, 0, [changed_verdict("model-1")]),
            details={"model-1": {"nothing_joins": {"predictions": 9}, **OWNED}},
        ),
        "model-1",
    ),
}


@cache
def report(known: str) -> Report | None:
    """A report, made when a test first asks for it."""
    return REPORTS[known]()


def validate(value: Any, schema: dict[str, Any]) -> None:
    whole = {**schema, "components": DESCRIBED["components"]}
    Draft202012Validator(whole).validate(value)


def schema_of(path: str, status: str) -> dict[str, Any] | None:
    answer = DESCRIBED["paths"][path]["get"]["responses"][status]
    if "$ref" in answer:
        answer = DESCRIBED["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return answer["content"].get("application/json", {}).get("schema")


def test_every_route_is_described_and_nothing_else() -> None:
    section = HttpSection.model_validate({"listen": "127.0.0.1:0"})
    app = build_server(section, FakeHealth(), Telemetry(level="error"))._application()
    served = {re.sub(r"\{(\w+):[^}]*\}", r"{\1}", resource.canonical) for resource in app.router.resources()}
    assert served == set(PATHS)


def test_every_query_parameter_is_described_and_nothing_else() -> None:
    section = HttpSection.model_validate({"listen": "127.0.0.1:0"})
    server = build_server(section, FakeHealth(), Telemetry(level="error"))
    for exporter in server._exporters:
        for route in exporter.routes:
            path = path_of(route)
            parameters = DESCRIBED["paths"][path]["get"].get("parameters", [])
            assert {p["name"] for p in parameters if p.get("in") == "query"} == {
                query.name for query in route.query
            }, path


@pytest.mark.slow
@pytest.mark.parametrize("known", REPORTS)
@pytest.mark.parametrize("path", PATHS)
async def test_every_answer_is_as_described(path: str, known: str) -> None:
    async with serving() as server, aiohttp.ClientSession(server.url) as session:
        made = report(known)
        if made is not None:
            server.publish(made)
            async with session.get("/api/v1/stream") as stream:  # the observers have seen the report, too
                await stream.content.readuntil(b"event: report\n")
        parameters = DESCRIBED["paths"][path]["get"].get("parameters", [])
        query = urlencode({p["name"]: QUERIES[p["name"]] for p in parameters if p.get("in") == "query"})
        async with session.get(f"{path.format(**EXAMPLES)}?{query}") as answer:
            unknown = {"{model}": made is None, "{champion}": known != "with everything of the catalogue"}
            missing = any(absent and variable in path for variable, absent in unknown.items())
            assert answer.status == (404 if missing else 200)
            kinds = set(DESCRIBED["paths"][path]["get"]["responses"]["200"]["content"]) - {"*/*"}
            assert not kinds or answer.content_type in {*kinds, "application/json"}
            schema = schema_of(path, str(answer.status))
            if schema is not None:
                validate(await answer.json(), schema)


async def test_groups_are_as_described() -> None:
    async with (
        serving() as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        server.publish(report_of({"a-1": Model(), "a-2": Model(), "b": Model()}))
        async with session.get("/api/v1/list?group=1") as answer:
            reported = await answer.json()
        validate(reported, {"$ref": "#/components/schemas/Listing"})
        assert [group["prefix"] for group in reported["groups"]] == ["a-", "b"]


def test_descriptions_close_every_backtick_they_open_and_say_what_a_wrong_parameter_is() -> None:
    reported = re.findall(r'"(?:description|summary)": "((?:[^"\\\\]|\\\\.)*)"', json.dumps(DESCRIBED))
    assert len(reported) > 100
    assert [text for text in reported if text.count("`") % 2] == []
    wrong = DESCRIBED["components"]["responses"]["BadRequest"]["description"]
    assert wrong == "A query parameter has a value that is not allowed"


async def test_events_are_as_described() -> None:
    async with serving() as server, aiohttp.ClientSession(server.url, read_bufsize=2**20) as session:
        server.publish(report_of({"a": Model()}, 0, [alarm("a")]))
        async with session.get("/api/v1/stream") as stream:
            for second in (1, 2):
                await stream.content.readuntil(b"data: ")
                data = json.loads(await stream.content.readline())
                validate(data, {"$ref": "#/components/schemas/News"})
                server.publish(report_of({"b": Model(outcomes=3)}, second, [alarm("a"), alarm("b")]))


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/api/v1/models/nobody", "", 404),
        ("/api/v1/models/nobody/history", "", 404),
        ("/api/v1/comparisons/nobody/history", "", 404),
        ("/api/v1/comparisons/nobody/history", "since=then", 400),
        ("/api/v1/alarms", "limit=0", 400),
        ("/api/v1/list", "sort=beauty", 400),
        ("/api/v1/list", "rows=0", 400),
        ("/api/v1/alarms", "limit=all", 400),
        ("/api/v1/alarms", "model=", 400),
        ("/api/v1/models/model-1/history", "since=yesterday", 400),
    ],
)
async def test_refusals_are_as_described(path: str, query: str, status: int) -> None:
    error = DESCRIBED["components"]["schemas"]["Error"]
    async with (
        serving() as server,
        aiohttp.ClientSession(server.url) as session,
        session.get(f"{path}?{query}") as answer,
    ):
        assert answer.status == status
        validate(await answer.json(), error)


async def test_a_request_to_another_host_is_refused_as_described() -> None:
    async with serving() as server, aiohttp.ClientSession(server.url) as session:
        for path in ("/", "/metrics", "/api/v1/models", "/healthz"):
            responses = DESCRIBED["paths"][path]["get"]["responses"]
            async with session.get(path, headers={"Host": "elsewhere.example"}) as answer:
                assert (answer.status == 421) == ("421" in responses) == ("503" in responses), path


def test_the_document_is_openapi_3_1_and_every_reference_leads_somewhere() -> None:
    assert DESCRIBED["openapi"].startswith("3.1.")
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(DESCRIBED)):
        found: Any = DESCRIBED
        for step in reference.split("/"):
            found = found[step]
        assert found
    for schema in DESCRIBED["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for path, item in DESCRIBED["paths"].items():
        variables = set(re.findall(r"\{(\w+)\}", path))
        parameters = [
            DESCRIBED["components"]["parameters"][p["$ref"].rpartition("/")[2]] if "$ref" in p else p
            for p in item["get"].get("parameters", [])
        ]
        assert {p["name"] for p in parameters if p["in"] == "path"} == variables, path
