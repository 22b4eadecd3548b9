"""Samples in columns say what a list of samples says."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.metrics.series import Columns, Family, Histogram, HistogramColumn, ModelKeys, Sample
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from tests.edge.web.exposition import PLAIN, parsed, report

NUMBERS = st.floats() | st.integers(0, 2**53).map(float)
PARTS = st.lists(st.tuples(st.booleans(), st.lists(NUMBERS, max_size=4)), max_size=4)


def made(parts: list[tuple[bool, list[float]]]) -> tuple[Columns, list[Sample]]:
    """Columns of some parts, and the samples that they are."""
    columns, samples = Columns(), list[Sample]()
    for number, (in_columns, values) in enumerate(parts):
        keys = ModelKeys([f"m{number}-{k}" for k in range(len(values))])
        defined: list[Sample] = [each for each in zip(keys, values, strict=True) if not isnan(each[1])]
        if in_columns:
            columns.add(keys, np.array(values, np.float64))
        else:
            columns.extend(defined)
        samples += defined
    return columns, samples


@given(PARTS)
def test_they_are_the_defined_values_in_order(parts: list[tuple[bool, list[float]]]) -> None:
    columns, samples = made(parts)
    assert columns == samples
    assert len(columns) == len(samples)
    assert [columns[at] for at in range(len(samples))] == samples
    assert columns[-2:] == samples[-2:]
    assert columns != [*samples, "more"]


@given(PARTS)
def test_a_scrape_reads_back_as_that_of_a_list(parts: list[tuple[bool, list[float]]]) -> None:
    columns, samples = made(parts)
    texts = [
        PrometheusExporter()
        .render(Asked(report([Family("accuracy_ratio", "gauge", "h", ("model",), each)]), media_type=PLAIN))
        .decode()
        for each in (columns, samples)
    ]
    assert parsed(texts[0], PLAIN) == parsed(texts[1], PLAIN)


NAMES = st.text(max_size=5)


@given(st.lists(NAMES, max_size=4, unique=True), st.lists(NAMES, min_size=4, max_size=4), st.data())
def test_labels_on_both_sides_of_the_model_read_back(
    models: list[str], others: list[str], data: st.DataObject
) -> None:
    values = np.array(data.draw(st.lists(NUMBERS, min_size=len(models), max_size=len(models))), np.float64)
    columns = Columns()
    for a, b in (others[:2], others[2:]):
        columns.add(ModelKeys(models, (a,), (b,)), values)
    labels = ("detector", "model", "opponent")
    texts = [
        PrometheusExporter()
        .render(Asked(report([Family("lead", "gauge", "h", labels, samples)]), media_type=PLAIN))
        .decode()
        for samples in (columns, list(columns))
    ]
    assert parsed(texts[0], PLAIN) == parsed(texts[1], PLAIN)


@given(st.lists(NAMES, max_size=4, unique=True), st.sampled_from([(), ("x",)]), st.sampled_from([(), ("y",)]))
def test_histograms_of_models_read_back(
    models: list[str], before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    columns = Columns()
    counts = np.cumsum(np.arange(3 * len(models)).reshape(-1, 3), axis=1)
    keys = ModelKeys(models, before, after)
    columns.add_part(HistogramColumn(keys, counts, np.arange(len(models)) / 4))
    labels = ("class",) * len(before) + ("model",) + ("side",) * len(after)
    texts = [
        PrometheusExporter()
        .render(
            Asked(report([Family("delay", "histogram", "h", labels, samples, (1.0, 2.5))]), media_type=PLAIN)
        )
        .decode()
        for samples in (columns, list(columns))
    ]
    assert parsed(texts[0], PLAIN) == parsed(texts[1], PLAIN)


def test_columns_added_to_others_keep_their_order() -> None:
    first, second = made([(True, [1.0, float("nan")]), (False, [2.0])])[0], made([(True, [3.0])])[0]
    both = [*first, *second]
    first.extend(second)
    assert first == both
    assert len(first) == 3


def test_a_histogram_among_them_is_rendered() -> None:
    columns = Columns()
    columns.extend([(("m",), Histogram((1, 2), 3.5))])
    family = Family("delay", "histogram", "h", ("model",), columns, (1.0,))
    text = PrometheusExporter().render(Asked(report([family]), media_type=PLAIN)).decode()
    assert 'streamwatch_delay_bucket{model="m",le="+Inf"} 2\n' in text


def test_a_position_beyond_the_end_is_refused() -> None:
    with pytest.raises(IndexError):
        made([(True, [0.5])])[0][1]


def test_a_column_without_a_defined_value_is_not_held() -> None:
    columns = Columns()
    columns.add(ModelKeys(["a", "b"]), np.full(2, np.nan))
    columns.add(ModelKeys(["a", "b"]), np.array([np.nan, 1.0]))
    assert len(columns.parts) == 1
    assert list(columns) == [(("b",), 1.0)]
