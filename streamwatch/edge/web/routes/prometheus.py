"""A report as Prometheus text 0.0.4 or OpenMetrics 1.0, whichever the scraper asks for.

Rendering costs what changes: the text before a value (name and labels) is made once per series and kept while
the series lives, and the samples of one report are rendered once for all scrapers and both formats.
prometheus-client chooses the format and is the oracle of the tests; its own renderer makes every line anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_1_0
from prometheus_client.utils import floatToGoString

from streamwatch.core.estimators import catalogue
from streamwatch.core.series import Family, Histogram, Report, exposed
from streamwatch.core.series_limit import left_out, series_of

DROPPED = "series_dropped"
PLAIN_0_0_4 = CONTENT_TYPE_PLAIN_0_0_4


@dataclass(slots=True)
class _Prefixes:
    """Text before each value, by label values; of one family."""

    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    scalars: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    histograms: dict[tuple[str, ...], tuple[str, ...]] = field(
        default_factory=dict[tuple[str, ...], tuple[str, ...]]
    )

    def forget_vanished(self, family: Family) -> None:
        """Keep no text of a series that is gone."""
        if len(self.scalars) + len(self.histograms) <= len(family.samples):
            return
        alive = {values for values, _ in family.samples}
        self.scalars = {values: text for values, text in self.scalars.items() if values in alive}
        self.histograms = {values: texts for values, texts in self.histograms.items() if values in alive}


class PrometheusExporter:
    """`/metrics`: every series of the last report, and the live facts.

    A live family replaces a family of the same name in the report. Renders from one thread at a time.

    Parameters
    ----------
    max_series
        Series in one answer at most; families above it are left out by `catalogue.RANKS` and counted in
        `series_dropped`.
    """

    routes: Sequence[str] = ("/metrics",)
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    public = False

    def __init__(self, max_series: int = 50_000) -> None:
        self._max_series = max_series
        self._prefixes: dict[str, _Prefixes] = {}
        self._rendered: tuple[Report, frozenset[str], list[tuple[Family, str]]] | None = None

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """Format for an `Accept` header, as prometheus-client chooses it; text 0.0.4 when in doubt."""
        del asked
        try:
            _, chosen = choose_encoder(accept)
        except TypeError:  # a version that is no number, such as `version=latest`
            return PLAIN_0_0_4
        return OPENMETRICS_1_0 if chosen.startswith("application/openmetrics-text") else PLAIN_0_0_4

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes:
        """Exposition of the live families and the report; a text that ends with its last line's newline."""
        del asked
        openmetrics = media_type.startswith("application/openmetrics-text")
        live_names = {family.name for family in live}
        of_report = () if report is None else report.families
        everything = (*live, *(family for family in of_report if family.name not in live_names))
        counted = any(family.name == DROPPED for family in everything)
        gone = left_out(everything, self._max_series - (not counted), catalogue.RANKS)
        if gone:
            live = [*live, _dropped(everything, gone)]
            live_names.add(DROPPED)
        blocks = [(family, self._lines(family)) for family in live if family.name not in gone]
        blocks += self._of(report, gone | live_names)
        parts = [part for family, lines in blocks for part in (_head(family, openmetrics=openmetrics), lines)]
        if openmetrics:
            parts.append("# EOF\n")
        return "".join(parts).encode()

    def _of(self, report: Report | None, without: frozenset[str]) -> list[tuple[Family, str]]:
        if report is None:
            return []
        if self._rendered is None or self._rendered[0] is not report or self._rendered[1] != without:
            shown = [family for family in report.families if family.name not in without]
            for vanished in self._prefixes.keys() - without - {family.name for family in shown}:
                del self._prefixes[vanished]
            self._rendered = (report, without, [(family, self._lines(family)) for family in shown])
        return self._rendered[2]

    def _lines(self, family: Family) -> str:
        prefixes = self._prefixes.get(family.name)
        if prefixes is None or prefixes.labels != family.labels or prefixes.bounds != family.bounds:
            prefixes = self._prefixes[family.name] = _Prefixes(family.labels, family.bounds)
        lines = "".join(_sample_lines(family, prefixes))
        prefixes.forget_vanished(family)
        return lines


def _dropped(families: Sequence[Family], gone: frozenset[str]) -> Family:
    """Count what is left out here beside what the report had left out before."""
    count = sum(series_of(family) for family in families if family.name in gone)
    for family in families:
        if family.name == DROPPED:
            count += sum(int(value) for _, value in family.samples if not isinstance(value, Histogram))
    metric = catalogue.metric(DROPPED)
    return Family(DROPPED, "gauge", metric.help, (), [((), count)])


def _sample_lines(family: Family, prefixes: _Prefixes) -> list[str]:
    scalars, lines = prefixes.scalars, list[str]()
    for values, value in family.samples:
        if isinstance(value, Histogram):
            lines.append(_histogram_lines(family, prefixes, values, value))
            continue
        number = _number(value)
        if number != "NaN":  # undefined is no sample
            try:
                lines.append(f"{scalars[values]}{number}\n")
            except KeyError:
                prefix = scalars[values] = _scalar_prefix(family, values)
                lines.append(f"{prefix}{number}\n")
    return lines


def _histogram_lines(family: Family, prefixes: _Prefixes, values: tuple[str, ...], value: Histogram) -> str:
    texts = prefixes.histograms.get(values)
    if texts is None:
        texts = prefixes.histograms[values] = _histogram_prefixes(family, values)
    numbers = (*value.counts, value.counts[-1], value.total)
    return "".join(f"{text}{_number(number)}\n" for text, number in zip(texts, numbers, strict=True))


def _scalar_prefix(family: Family, values: tuple[str, ...]) -> str:
    pairs = _pairs(zip(family.labels, values, strict=True))
    name = exposed(family.name)
    return f"{name}{{{pairs}}} " if pairs else f"{name} "


def _histogram_prefixes(family: Family, values: tuple[str, ...]) -> tuple[str, ...]:
    pairs = _pairs(zip(family.labels, values, strict=True))
    before_le, labels = (f"{pairs},", f"{{{pairs}}}") if pairs else ("", "")
    name = exposed(family.name)
    bounds = (*family.bounds, float("inf"))
    buckets = (f'{name}_bucket{{{before_le}le="{floatToGoString(bound)}"}} ' for bound in bounds)
    return (*buckets, f"{name}_count{labels} ", f"{name}_sum{labels} ")


def _pairs(labels: Iterable[tuple[str, str]]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)


def _escaped(value: str) -> str:
    """A label value: lone surrogates are spelt out, so that one bad name cannot fail a scrape."""
    text = value.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without `.0`."""
    if value.__class__ is int:
        return str(value)
    text = float.__repr__(float(value))  # numpy's own floats have a wordy repr
    last = text[-1]
    if last == "0" and text[-2] == ".":
        return text[:-2]
    if last in "fn":  # inf, nan
        return floatToGoString(value)
    return text


def _head(family: Family, *, openmetrics: bool) -> str:
    name = exposed(family.name)
    text = family.help.encode("utf-8", "backslashreplace").decode().replace("\\", r"\\").replace("\n", r"\n")
    if openmetrics:
        name = name.removesuffix("_total") if family.kind == "counter" else name
        text = text.replace('"', r"\"")
    return f"# HELP {name} {text}\n# TYPE {name} {family.kind}\n"
