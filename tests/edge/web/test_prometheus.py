"""The exposition says exactly what prometheus-client would have written, only faster."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from streamwatch.core.metrics.series import ClassNames, ClassSamples, Family, Histogram
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from tests.edge.web.exposition import (
    FORMATS,
    OPENMETRICS,
    PLAIN,
    families,
    of_report,
    parsed,
    realistic,
    rendered_by_client,
    report,
)
from tests.tiers import examples

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


def render(made: list[Family], media_type: str = PLAIN) -> str:
    return of_report(PrometheusExporter().render(Asked(report(made), media_type=media_type)))


def gauge(value: float, *labels: str, name: str = "accuracy_ratio") -> Family:
    names = ("forgetting", "model")[2 - len(labels) :]
    return Family(name, "gauge", "Share of outcomes the model got right", names, [(labels, value)])


@given(made=families(), media_type=st.sampled_from(FORMATS))
@settings(max_examples=examples(1.5))
def test_whatever_is_rendered_reads_back_as_what_prometheus_client_renders(
    made: list[Family], media_type: str
) -> None:
    ours, theirs = render(made, media_type), rendered_by_client(made, media_type)
    assert parsed(ours, media_type) == parsed(theirs, media_type)


@pytest.mark.parametrize("media_type", FORMATS)
def test_every_family_of_the_catalogue_reads_back_the_same(media_type: str) -> None:
    made = realistic()
    assert parsed(render(made, media_type), media_type) == parsed(
        rendered_by_client(made, media_type), media_type
    )


@given(value=st.floats(allow_nan=False))
def test_every_number_reads_back_exactly(value: float) -> None:
    (family,) = text_string_to_metric_families(render([gauge(value, "landmark", "m")]))
    assert family.samples[0].value == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12, "12"),
        (12.0, "12"),
        (0.1, "0.1"),
        (1e-9, "1e-09"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (np.float64(0.25), "0.25"),
        (np.int64(7), "7"),
        (2**53 + 1, "9007199254740993"),
    ],
)
def test_numbers_are_written_short_and_whole_ones_without_a_point(value: float, text: str) -> None:
    assert render([gauge(value)]).splitlines()[-1] == f"streamwatch_accuracy_ratio {text}"


def test_an_undefined_value_has_no_sample() -> None:
    assert "streamwatch_accuracy_ratio{" not in render([gauge(math.nan, "landmark", "m")])


def test_a_histogram_has_cumulative_buckets_a_count_and_a_sum() -> None:
    delays = Family("delay", "histogram", "h", ("model",), [(("m",), Histogram((1, 4, 6), 9.5))], (1.0, 60.0))
    assert render([delays]).splitlines()[2:] == [
        'streamwatch_delay_bucket{model="m",le="1.0"} 1',
        'streamwatch_delay_bucket{model="m",le="60.0"} 4',
        'streamwatch_delay_bucket{model="m",le="+Inf"} 6',
        'streamwatch_delay_count{model="m"} 6',
        'streamwatch_delay_sum{model="m"} 9.5',
    ]


def test_openmetrics_names_a_counter_without_its_suffix_and_ends_with_eof() -> None:
    counter = Family("outcomes_total", "counter", 'Evaluated "predictions"', ("model",), [(("m",), 3)])
    assert render([counter], OPENMETRICS) == (
        '# HELP streamwatch_outcomes Evaluated \\"predictions\\"\n'
        "# TYPE streamwatch_outcomes counter\n"
        'streamwatch_outcomes_total{model="m"} 3\n'
        "# EOF\n"
    )
    assert "_created" not in render(realistic(), OPENMETRICS)


@pytest.mark.parametrize("media_type", FORMATS)
def test_a_lone_surrogate_in_a_name_is_spelt_out_and_the_scrape_lives(media_type: str) -> None:
    made = [gauge(0.5, "landmark", "bad \ud800"), gauge(0.25, "landmark", "good \U0001f600", name="kappa")]
    read = {family[0]: family[3] for family in parsed(render(made, media_type), media_type)}
    assert read["streamwatch_accuracy_ratio"][0][1][1] == ("model", "bad \\ud800")
    assert read["streamwatch_kappa"][0][1][1] == ("model", "good \U0001f600")


@given(made=families(st.text(st.characters(), max_size=4)))
@settings(max_examples=examples(0.5))
def test_no_text_whatever_fails_a_render(made: list[Family]) -> None:
    for media_type in FORMATS:
        parsed(render(made, media_type), media_type)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("text/plain", PLAIN),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", PLAIN),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text; version=0.0.1", PLAIN),
        ("application/openmetrics-text; version=latest", PLAIN),
        ("text/plain; version=latest", PLAIN),
        (PROMETHEUS_2, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS),
    ],
)
def test_the_scraper_gets_the_format_it_asks_for(accept: str, media_type: str) -> None:
    assert PrometheusExporter().media_type(accept, {}) == media_type


def test_a_live_fact_replaces_the_same_family_of_the_report() -> None:
    up, down = (Family("kafka_up", "gauge", "h", (), [((), value)]) for value in (1, 0))
    text = (
        PrometheusExporter().render(Asked(report([up, gauge(0.5)]), live=[down], media_type=PLAIN)).decode()
    )
    assert text.count("# TYPE streamwatch_kafka_up gauge") == 1
    assert "streamwatch_kafka_up 0\n" in text
    assert "streamwatch_accuracy_ratio 0.5\n" in text


def test_before_the_first_report_the_live_facts_are_served() -> None:
    up = Family("kafka_up", "gauge", "h", (), [((), 0)])
    text = of_report(PrometheusExporter().render(Asked(None, live=[up], media_type=OPENMETRICS)))
    assert text.splitlines()[2:] == [
        "streamwatch_kafka_up 0",
        "# EOF",
    ]


def test_a_retired_model_vanishes_from_the_scrape_and_from_the_cache() -> None:
    exporter = PrometheusExporter()
    for generation in range(5):
        family = replace(
            gauge(0.5), labels=("model",), samples=[((f"m{generation}-{i}",), 0.5) for i in range(9)]
        )
        text = exporter.render(Asked(report([family]), media_type=PLAIN)).decode()
        assert text.count(f"m{generation}-") == text.count("model=") == 9
        assert len(exporter._prefixes["accuracy_ratio"].scalars) == 9
    exporter.render(Asked(report([gauge(1.0, name="kappa")]), media_type=PLAIN))
    assert set(exporter._prefixes) == {"kappa", "series_dropped"}


def of_classes(models: dict[str, tuple[ClassNames, list[float]]]) -> Family:
    samples = ClassSamples("fading:0.999")
    for model, (names, values) in models.items():
        samples.add(model, names, np.array(values))
    return Family("recall_ratio", "gauge", "Recall", ("class", "forgetting", "model"), samples)


@pytest.mark.parametrize("media_type", FORMATS)
def test_series_of_classes_are_those_of_the_client_library(media_type) -> None:
    plain, odd = ClassNames(["a", "b", "c"]), ClassNames(['"', "\n", "\\", "ü", "\x7f", ""])
    made = of_classes(
        {
            "m": (plain, [0.5, math.nan, 1.0]),
            'quoted "m"': (odd, [0.1, 0.2, math.nan, 1 / 3, 0.25, 2.0]),
            "none defined": (plain, [math.nan] * 3),
            "one value": (odd, [1.0]),
            "more values than names": (plain, [0.0, 0.5, 1.0, 0.75]),
            "none": (plain, []),
        }
    )
    exporter = PrometheusExporter()
    for _ in range(2):  # the second report finds names that the first has kept
        text = exporter.render(Asked(report([made]), media_type=media_type)).decode()
        single = replace(made, samples=list(made.samples))
        assert parsed(text, media_type)[:1] == parsed(rendered_by_client([single], media_type), media_type)


def test_names_of_classes_are_kept_while_they_are_in_the_report() -> None:
    exporter = PrometheusExporter()
    first, second = ClassNames(["a", "b"]), ClassNames(["a"])
    exporter.render(
        Asked(report([of_classes({"m": (first, [0.5, 0.5]), "n": (second, [1.0])})]), media_type=PLAIN)
    )
    assert {id(names) for names, _ in exporter._escaped.values()} == {id(first.names), id(second.names)}
    assert exporter._escaped[id(first.names)][1][0] is first.names[0]  # no copies of plain names
    exporter.render(Asked(report([of_classes({"n": (second, [0.5])})]), media_type=PLAIN))
    assert [names for names, _ in exporter._escaped.values()] == [second.names]


@given(reports=st.lists(families(), min_size=2, max_size=3))
@settings(max_examples=examples(0.3))
def test_what_was_cached_for_one_report_does_not_show_in_the_next(reports: list[list[Family]]) -> None:
    kept = PrometheusExporter()
    for made in reports:
        for media_type in FORMATS:
            assert of_report(kept.render(Asked(report(made), media_type=media_type))) == render(
                made, media_type
            )


def test_one_report_is_rendered_once_for_all_scrapers() -> None:
    exporter, published = PrometheusExporter(), report(realistic())
    exporter.render(Asked(published, media_type=PLAIN))
    blocks = exporter._rendered
    exporter.render(Asked(published, media_type=OPENMETRICS))
    assert exporter._rendered is blocks
