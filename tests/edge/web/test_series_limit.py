"""No answer of /metrics holds more series than allowed; what is left out goes by rank and is told."""

from __future__ import annotations

import pytest

from streamwatch.core.estimators import catalogue
from streamwatch.core.series import Family, Histogram
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from tests.contracts.families import every_family
from tests.edge.web.exposition import FORMATS, PLAIN, report
from tests.edge.web.http_faces import FakeHealth

MODELS = 10_000
FORGETTINGS = ("fading:0.999", "landmark", "sliding:1000")
LIVE = FakeHealth().families()


def samples_of(name: str, labels: tuple[str, ...], models: int) -> Family:
    metric = {family.name: family for family in every_family()}[name]
    others = [label for label in labels if label != "model"]
    keys = [
        (*([value] * bool(others)), f"m{n}")
        for n in range(models)
        for value in (FORGETTINGS if others else ("",))
    ]
    if metric.kind == "histogram":
        bounds = metric.bounds
        return Family(
            name,
            "histogram",
            "h",
            labels,
            [(k, Histogram((1,) * (len(bounds) + 1), 1.0)) for k in keys],
            bounds,
        )
    return Family(name, metric.kind, "h", labels, [(key, 1.0) for key in keys])


def many(models: int = MODELS) -> list[Family]:
    return [
        samples_of("outcomes_total", ("model",), models),
        samples_of("errors_total", ("model",), models),
        samples_of("accuracy_ratio", ("forgetting", "model"), models),
        samples_of("kappa_plus", ("forgetting", "model"), models),
        samples_of("label_delay_seconds", ("model",), models),
        Family("predictions_accepted_total", "counter", "h", (), [((), 5.0)]),
        Family("series_dropped", "gauge", "h", (), [((), 7.0)]),
    ]


def lines(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if not line.startswith("#")]


@pytest.mark.slow
@pytest.mark.parametrize("media_type", FORMATS)
def test_ten_thousand_models_stay_within_the_limit_and_the_rest_is_told(media_type: str) -> None:
    exporter = PrometheusExporter(50_000)
    shown = lines(exporter.render(report(many()), LIVE, media_type, {}))
    names = {line.split("{")[0].split(" ")[0].removeprefix("streamwatch_") for line in shown}
    assert len(shown) <= 50_000
    assert {"outcomes_total", "accuracy_ratio", "predictions_accepted_total", "build_info"} <= names
    assert not names & {"kappa_plus", "label_delay_seconds_bucket", "errors_total"}
    everything = 10_000 * (1 + 1 + 3 + 3 + 18)
    assert f"streamwatch_series_dropped {everything - 40_000 + 7}" in shown


@pytest.mark.slow
@pytest.mark.parametrize("most", [1_000, 25_000, 60_000, 100_000, 10**9])
def test_the_limit_is_hard_and_comes_and_goes_with_what_there_is(most: int) -> None:
    exporter = PrometheusExporter(most)
    for models in (MODELS, 10, MODELS):
        shown = lines(exporter.render(report(many(models)), LIVE, PLAIN, {}))
        complete = 26 * models + 2 + len(LIVE)
        dropped = next(
            int(line.split(" ")[1]) for line in shown if line.startswith("streamwatch_series_dropped")
        )
        assert len(shown) <= most
        assert len(shown) + dropped - 7 == complete


def test_what_is_of_no_model_can_be_left_out_when_nothing_else_is_left() -> None:
    lag = Family(
        "consumer_lag_records",
        "gauge",
        "h",
        ("partition", "topic"),
        [((str(n), "t"), 1.0) for n in range(5_000)],
    )
    shown = lines(PrometheusExporter(100).render(None, [*LIVE, lag], PLAIN, {}))
    assert f"streamwatch_series_dropped {5_000}" in shown
    assert len(shown) == len(LIVE) + 1


def test_every_series_of_models_has_a_rank_of_its_own() -> None:
    of_models = {
        family.name
        for family in every_family()
        if "model" in family.labels and family.name != "notifications"
    }
    assert of_models <= set(catalogue.RANKS)
    assert len(set(catalogue.RANKS.values())) == len(catalogue.RANKS)
    assert set(catalogue.RANKS) <= {family.name for family in every_family()}
