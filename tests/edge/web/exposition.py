"""Families for the exporters' tests, and prometheus-client as the oracle of what they must come out as."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Metric as ClientFamily
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from streamwatch.core.estimators.catalogue import BASELINES, BOUNDS, metrics
from streamwatch.core.metrics import COMPARISONS, Metric
from streamwatch.core.metrics.series import Family, Histogram, Report, exposed
from streamwatch.core.specs import OPPONENTS

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
FORMATS = (PLAIN, OPENMETRICS)
PUBLISHED_MS = 1_760_000_000_500


class ClientCollector(Collector):
    """The same families as prometheus-client knows them."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.families = families

    def collect(self) -> Iterator[ClientFamily]:
        for family in self.families:
            name, labels = exposed(family.name), list(family.labels)
            if family.kind == "histogram":
                histogram = HistogramMetricFamily(name, family.help, labels=labels)
                bounds = [*map(floatToGoString, family.bounds), "+Inf"]
                for values, value in family.samples:
                    assert isinstance(value, Histogram)
                    buckets = list(zip(bounds, value.counts, strict=True))
                    histogram.add_metric(values, buckets, value.total)
                yield histogram
                continue
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(name, family.help, labels=labels)
            for values, value in family.samples:
                assert not isinstance(value, Histogram)
                metric.add_metric(list(values), value)
            yield metric


def rendered_by_client(families: Sequence[Family], media_type: str) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ClientCollector(families))
    return (as_text if media_type == PLAIN else as_openmetrics)(registry).decode()


def parsed(text: str, media_type: str) -> list[tuple[Any, ...]]:
    """(name, type, help, samples) of every family, as prometheus-client reads the text."""
    families: Iterable[ClientFamily] = (parse_text if media_type == PLAIN else parse_openmetrics)(text)
    return [
        (
            family.name,
            family.type,
            family.documentation,
            sorted((s.name, sorted(s.labels.items()), s.value) for s in family.samples),
        )
        for family in families
    ]


def of_report(text: str | bytes) -> str:
    """An exposition without `series_dropped`, which every scrape ends with."""
    lines = (text if isinstance(text, str) else text.decode()).splitlines(keepends=True)
    return "".join(line for line in lines if "streamwatch_series_dropped" not in line)


def report(families: Sequence[Family], details: dict[str, dict[str, object]] | None = None) -> Report:
    return Report(families, PUBLISHED_MS, details or {})


def realistic(models: int = 3, classes: int = 4, seed: int = 1) -> list[Family]:
    """Every family of the catalogue with plausible numbers, for so many models."""
    return families_of((*metrics(), *COMPARISONS), models, classes, seed)


def families_of(
    metrics: Iterable[Metric | Family], models: int = 3, classes: int = 4, seed: int = 1
) -> list[Family]:
    """These metrics with plausible numbers and every combination of label values."""
    values: dict[str, list[str]] = {
        "model": [f"model-{m}" for m in range(models)],
        "forgetting": ["landmark", "fading:0.999", "sliding:1000", "adwin:0.05"],
        "detector": ["page_hinkley", "adwin"],
        "baseline": [b.name for b in BASELINES],
        "bound": [b.name for b in BOUNDS],
        "opponent": list(OPPONENTS),
        "side": ["better", "worse"],
        "stage": ["begun", "recovered", "not_recovered"],
        "class": [f"class {c}" for c in range(classes)],
        "fold": ["0", "1"],
        "segment": ["country"],
        "value": ["de", "__other__"],
        "champion": ["model-1"],
        "challenger": [f"model-{m}" for m in range(models) if m != 1],
        "reason": ["invalid", "label_absent"],
        "severity": ["critical", "warning"],
    }
    rng = random.Random(seed)
    return [_family(metric, values, rng) for metric in metrics]


def _family(metric: Metric | Family, values: dict[str, list[str]], rng: random.Random) -> Family:
    series: list[tuple[str, ...]] = [()]
    if metric.name == "model_info":  # one series of each model
        values = {**values, "label_topic": ["labels"], "severity": [""], "topic": ["predictions"]}
    for label in metric.labels:
        series = [(*before, value) for before in series for value in values[label]]
    samples = [(labels, _value(metric, rng)) for labels in series]
    return Family(metric.name, metric.kind, metric.help, metric.labels, samples, metric.bounds)


def _value(metric: Metric | Family, rng: random.Random) -> float | Histogram:
    if metric.name in {"verdict", "comparison_verdict"}:
        return rng.choice((-1, 0, 1))
    if metric.name in {"verdict_since_outcome", "comparison_verdict_since_pair"}:
        return rng.randrange(1, 10**6)
    if metric.kind == "histogram":
        counts = sorted(rng.randrange(10_000) for _ in range(len(metric.bounds) + 1))
        return Histogram(tuple(counts), rng.random() * 1e6)
    return rng.randrange(10**9) if metric.kind == "counter" else rng.random()


@st.composite
def families(draw: st.DrawFn, text: st.SearchStrategy[str] | None = None) -> list[Family]:
    """Families of every kind over odd label values, infinities and tiny numbers."""
    text = st.text(max_size=8) if text is None else text
    made: list[Family] = []
    for number in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["counter", "gauge", "histogram"]))
        labels = tuple(sorted(draw(st.sets(st.sampled_from(["class", "forgetting", "model"])))))
        bounds: tuple[float, ...] = ()
        value: st.SearchStrategy[Any]
        if kind == "histogram":
            bounds = tuple(sorted(draw(st.sets(st.floats(1e-9, 1e9), max_size=4))))
            size = len(bounds) + 1
            increments = st.lists(st.integers(0, 10**12), min_size=size, max_size=size)
            value = st.builds(_histogram, increments, st.floats(0, 1e300))
        elif kind == "counter":
            value = st.integers(0, 2**53) | st.floats(0, allow_infinity=True)
        else:
            value = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)
        series = draw(st.lists(st.tuples(*(text for _ in labels)), unique=True, max_size=4))
        samples = [(labels, draw(value)) for labels in series]
        name = f"metric{number}" + ("_total" if kind == "counter" else "")
        made.append(Family(name, kind, draw(st.text(max_size=20)), labels, samples, bounds))
    return made


def _histogram(increments: list[int], total: float) -> Histogram:
    counts: list[int] = []
    for increment in increments:
        counts.append(increment + (counts[-1] if counts else 0))
    return Histogram(tuple(counts), total)
