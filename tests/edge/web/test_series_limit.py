"""No answer of /metrics holds more series than allowed; what is left out is counted, and logged on change."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import numpy as np
import pytest
from aiohttp import ClientSession

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Columns, Family, ModelKeys, Report
from streamwatch.core.metrics.series_budget import PARTS, Cut, SeriesBudget, lines_of
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.json_api import JsonExporter
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from streamwatch.telemetry import SeriesDropped, Telemetry
from tests.edge.web.exposition import FORMATS, PLAIN, PUBLISHED_MS, realistic, report
from tests.edge.web.http_faces import FakeHealth, serving

FORGETTINGS = ("landmark", "fading:0.999", "sliding:1000", "adwin:0.05")
LIVE = FakeHealth().families()
LIVE_SERIES = sum(map(lines_of, LIVE))


def exporter(most: int) -> PrometheusExporter:
    return PrometheusExporter(SeriesBudget(most, FORGETTINGS))


def lines(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if not line.startswith("#")]


def dropped(shown: list[str]) -> int:
    parts = [line for line in shown if line.startswith("streamwatch_series_dropped{")]
    assert len(parts) == len(PARTS)
    return sum(int(line.split(" ")[1]) for line in parts)


@pytest.mark.parametrize("media_type", FORMATS)
@pytest.mark.parametrize("most", [1_500, 2_500, 5_000, 10**9])
def test_the_limit_is_hard_and_comes_and_goes_with_what_there_is(most: int, media_type: str) -> None:
    shown_by = exporter(most)
    for models in (20, 3, 20, 1):
        families = realistic(models)
        shown = lines(shown_by.render(Asked(report(families), live=LIVE, media_type=media_type)))
        complete = sum(map(lines_of, families)) + LIVE_SERIES + len(PARTS)
        assert len(shown) <= most
        assert len(shown) + dropped(shown) == complete


def test_columns_are_cut_as_single_samples_are() -> None:
    def families(part: Callable[[Columns, list[str], float], None]) -> list[Family]:
        found: list[Family] = []
        for name in ("accuracy_ratio", "kappa", "mcc", "p_majority_ratio"):
            columns = Columns()
            for models in (["a", "b", "c"], ["d", "e"]):
                part(columns, models, float(len(name)))
            found.append(Family(name, "gauge", "", ("forgetting", "model"), columns))
        return found

    def in_columns(columns: Columns, models: list[str], value: float) -> None:
        for forgetting in FORGETTINGS:
            values = np.full(len(models), value, np.float64)
            if forgetting == "adwin:0.05":
                values[0] = np.nan
            columns.add(ModelKeys(models, (forgetting,)), values)

    def singly(columns: Columns, models: list[str], value: float) -> None:
        made = Columns()
        in_columns(made, models, value)
        columns.extend(list(made))

    for most in (20, 40, 60):
        first, again = (exporter(most), exporter(most))
        shown = lines(first.render(Asked(report(families(in_columns)), media_type=PLAIN)))
        assert shown == lines(again.render(Asked(report(families(singly)), media_type=PLAIN)))
        assert dropped(shown) == 72 + len(PARTS) - len(shown) > 0


def test_what_is_of_no_model_can_be_left_out_when_nothing_else_is_left() -> None:
    lag = family("consumer_lag_records", [((str(n), "t"), 1.0) for n in range(5_000)])
    shown = lines(exporter(100).render(Asked(None, live=[*LIVE, lag], media_type=PLAIN)))
    assert 'streamwatch_series_dropped{part="needed"} 5000' in shown
    assert len(shown) == LIVE_SERIES + len(PARTS)


def test_the_same_report_is_cut_again_when_live_series_need_the_room() -> None:
    families = realistic(5)
    most = sum(map(lines_of, families)) + LIVE_SERIES + len(PARTS)
    shown_by, published = exporter(most), report(families)
    assert dropped(lines(shown_by.render(Asked(published, live=LIVE, media_type=PLAIN)))) == 0
    lag = family("consumer_lag_records", [((str(n), "t"), 1.0) for n in range(50)])
    shown = lines(shown_by.render(Asked(published, live=[*LIVE, lag], media_type=PLAIN)))
    assert len(shown) <= most
    assert dropped(shown) >= 50


def test_it_is_reported_when_something_else_is_left_out_than_before() -> None:
    reported: list[Cut] = []
    shown_by = PrometheusExporter(SeriesBudget(2_500, FORGETTINGS), reported.append)
    for models in (1, 1, 12, 12, 1):
        shown_by.render(Asked(report(realistic(models)), live=LIVE, media_type=PLAIN))
    assert [bool(cut.dropped) for cut in reported] == [True, False]
    assert reported[0].models == 12


async def test_a_daemon_logs_what_is_left_out_once_a_minute_at_most_and_its_api_has_it_all() -> None:
    out = io.StringIO()
    telemetry = Telemetry(form="json", stream=out)
    async with (
        serving(telemetry=telemetry, monitors=MonitorsSpec(max_series=2_500, all_series=True)) as server,
        ClientSession(server.url) as session,
    ):
        server.publish(Report(realistic(12), PUBLISHED_MS, {}))
        shown = lines(await (await session.get("/metrics")).read())
        server.publish(Report(realistic(6), PUBLISHED_MS + 1, {}))
        await (await session.get("/metrics")).read()
        one = await (await session.get("/api/v1/models/model-3")).json()
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    (event,) = [each for each in events if each["event"] == "series_dropped"]
    assert (event["level"], event["max_series"], event["models"]) == ("warning", 2_500, 12)
    assert event["dropped"] == dropped(shown) > 0
    assert "class" in event["by_part"]
    assert telemetry.count(SeriesDropped) == 2
    assert not any(line.startswith("streamwatch_recall_ratio") for line in shown)
    assert set(one["metrics"]["recall_ratio"]) == {f"class {n}" for n in range(4)}


def test_the_api_of_all_models_and_of_one_say_the_same() -> None:
    published = report(realistic(3))
    every = json.loads(JsonExporter().render(Asked(published)) or b"")
    for name, document in every["models"].items():
        one = json.loads(JsonExporter().render(Asked(published, {"model": name})) or b"")
        assert one["metrics"] == document["metrics"]
