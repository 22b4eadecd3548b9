"""Samples in columns say what a list of samples says."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.metrics.series import Columns, Family, Histogram, Sample
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from tests.edge.web.exposition import PLAIN, parsed, report

NUMBERS = st.floats() | st.integers(0, 2**53).map(float)
PARTS = st.lists(st.tuples(st.booleans(), st.lists(NUMBERS, max_size=4)), max_size=4)


def made(parts: list[tuple[bool, list[float]]]) -> tuple[Columns, list[Sample]]:
    """Columns of some parts, and the samples that they are."""
    columns, samples = Columns(), list[Sample]()
    for number, (in_columns, values) in enumerate(parts):
        keys = [(f"m{number}-{k}",) for k in range(len(values))]
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
        .render(report([Family("accuracy_ratio", "gauge", "h", ("model",), each)]), (), PLAIN, {})
        .decode()
        for each in (columns, samples)
    ]
    assert parsed(texts[0], PLAIN) == parsed(texts[1], PLAIN)


def test_the_text_of_a_column_is_made_once_and_kept_while_the_column_is_there() -> None:
    exporter, keys = PrometheusExporter(), [("a",), ("b",)]

    def rendered(names: list[tuple[str, ...]], values: list[float]) -> list[str]:
        columns = Columns()
        columns.add(names, np.array(values))
        columns.extend([(("h",), 7)])
        family = Family("accuracy_ratio", "gauge", "h", ("model",), columns)
        text = exporter.render(report([family]), (), PLAIN, {}).decode()
        return [line.partition("model=")[2] for line in text.splitlines() if "model=" in line]

    assert rendered(keys, [1.0, 0.25]) == ['"a"} 1', '"b"} 0.25', '"h"} 7']
    first = exporter._prefixes["accuracy_ratio"].columns[id(keys)]
    assert rendered(keys, [float("nan"), float("inf")]) == ['"b"} +Inf', '"h"} 7']
    assert exporter._prefixes["accuracy_ratio"].columns[id(keys)] is first
    assert rendered([("c",)], [0.5]) == ['"c"} 0.5', '"h"} 7']
    assert len(exporter._prefixes["accuracy_ratio"].columns) == 1


def test_a_histogram_among_them_is_rendered() -> None:
    columns = Columns()
    columns.extend([(("m",), Histogram((1, 2), 3.5))])
    family = Family("delay", "histogram", "h", ("model",), columns, (1.0,))
    text = PrometheusExporter().render(report([family]), (), PLAIN, {}).decode()
    assert 'streamwatch_delay_bucket{model="m",le="+Inf"} 2\n' in text


def test_a_position_beyond_the_end_is_refused() -> None:
    with pytest.raises(IndexError):
        made([(True, [0.5])])[0][1]
