"""Route of metrics, as Prometheus text 0.0.4 or OpenMetrics 1.0, as the scraper requests.

Series of a column differ by the model only: its lines are joined from the text before the name of the model,
that name, the text after it, and the value; those of a model's classes in the same way around the name of the
class. The text before the value of any other series is made once and kept while the series exists. A report
is rendered once for all scrapers and both formats. prometheus-client chooses the format, and is the oracle of
the tests; its own renderer makes every line anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress, cycle, islice, repeat
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_1_0
from prometheus_client.utils import floatToGoString

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import (
    ClassSamples,
    Column,
    Columns,
    Family,
    Histogram,
    HistogramColumn,
    ModelKeys,
    Report,
    Sample,
    exposed,
)
from streamwatch.core.metrics.series_budget import PARTS, Cut, Part, SeriesBudget, lines_of, within
from streamwatch.core.metrics.table import StandardSeries
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.web.ports import Asked, Route

DROPPED = "series_dropped"
PLAIN_0_0_4 = CONTENT_TYPE_PLAIN_0_0_4
_NOTHING: Final = Cut((), 0)
_ENCODER: Final = msgspec.json.Encoder()


@dataclass(slots=True)
class _Prefixes:
    """Texts before the values of one family, by label values."""

    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    scalars: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    histograms: dict[tuple[str, ...], tuple[str, ...]] = field(
        default_factory=dict[tuple[str, ...], tuple[str, ...]]
    )

    def forget_vanished(self, family: Family) -> None:
        """Drop the texts of series that are not in the family."""
        if len(self.scalars) + len(self.histograms) <= len(family.samples):
            return
        alive = {values for values, _ in family.samples}
        self.scalars = {values: text for values, text in self.scalars.items() if values in alive}
        self.histograms = {values: texts for values, texts in self.histograms.items() if values in alive}


class PrometheusExporter:
    """Exporter of `/metrics`: every series of the last report, and live facts.

    A live family replaces a family of the same name in the report. Used by one thread at a time.

    Parameters
    ----------
    budget
        Chooses the series that fit its limit; the others are counted in `series_dropped`.
    changed
        Called in the rendering thread when other series are dropped than before, or a tenth more or less.
    standard
        Chooses the series of a report to export; None: all.
    """

    routes: Sequence[Route] = (
        Route(
            "/metrics",
            "Everything for Prometheus: text 0.0.4 or OpenMetrics 1.0, as the scraper asks",
            tag="daemon",
            media_types=("text/plain", "application/openmetrics-text"),
        ),
    )

    def __init__(
        self,
        budget: SeriesBudget | None = None,
        changed: Callable[[Cut], None] = lambda _: None,
        standard: StandardSeries | None = None,
    ) -> None:
        self._standard = standard
        self._chosen: tuple[Report, list[Family]] | None = None
        self._budget = budget or SeriesBudget.of(MonitorsSpec())
        self._changed = changed
        self._prefixes: dict[str, _Prefixes] = {}
        self._cut: tuple[Report, frozenset[str], Cut] | None = None
        self._rendered: tuple[Cut, list[tuple[Family, bytes]]] | None = None
        self._escaped: dict[int, tuple[object, Sequence[str]]] = {}
        """`id` of a sequence of models or classes → (that sequence, kept so that its id stays unique, escaped
        names); of those in the last report."""
        self._used: set[int] = set()
        """Keys of `_escaped` that the present report has used so far."""
        self._reported: Mapping[Part, int] = {}

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """Return the format for an `Accept` header, by prometheus-client; text 0.0.4 if invalid."""
        del asked
        try:
            _, chosen = choose_encoder(accept)
        except TypeError:  # raised for a version that is no number, such as `version=latest`
            return PLAIN_0_0_4
        return OPENMETRICS_1_0 if chosen.startswith("application/openmetrics-text") else PLAIN_0_0_4

    def render(self, asked: Asked) -> bytes:
        """Render live families and the report in the format of `media_type`."""
        live = asked.live
        openmetrics = asked.media_type.startswith("application/openmetrics-text")
        most = self._budget.max_series - len(PARTS)
        of_daemon = within(live, most)
        cut = self._cut_of(asked.report, live, most - sum(map(lines_of, of_daemon)))
        dropped = dict(cut.dropped)
        if len(of_daemon) < len(live):
            beyond = sum(map(lines_of, live)) - sum(map(lines_of, of_daemon))
            dropped["needed"] = dropped.get("needed", 0) + beyond
        counted = family(DROPPED, [((part,), dropped.get(part, 0)) for part in PARTS])
        blocks = [(each, self._lines(each).encode()) for each in of_daemon]
        blocks += [*self._of(cut), (counted, self._lines(counted).encode())]
        heads = (_head(each, openmetrics=openmetrics).encode() for each, _ in blocks)
        parts = [part for head, (_, lines) in zip(heads, blocks, strict=True) for part in (head, lines)]
        if openmetrics:
            parts.append(b"# EOF\n")
        return b"".join(parts)

    def _cut_of(self, report: Report | None, live: Sequence[Family], room: int) -> Cut:
        """Choose the series of a report that fit `room`; live families replace those of their names."""
        if report is None:
            return _NOTHING
        live_names = frozenset(each.name for each in live)
        known = self._cut
        if known is not None and known[0] is report and known[1] == live_names and known[2].lines <= room:
            return known[2]
        families = [each for each in self._shown(report) if each.name not in live_names]
        cut = self._budget.cut(families, self._budget.max_series - room, report.published_ms)
        self._cut = (report, live_names, cut)
        if _differ(self._reported, cut.dropped):
            self._reported = cut.dropped
            self._changed(cut)
        return cut

    def _shown(self, report: Report) -> Sequence[Family]:
        if self._standard is None:
            return report.families
        if self._chosen is None or self._chosen[0] is not report:
            self._chosen = report, self._standard.chosen(report.families)
        return self._chosen[1]

    def _of(self, cut: Cut) -> list[tuple[Family, bytes]]:
        if self._rendered is None or self._rendered[0] is not cut:
            before = () if self._rendered is None else self._rendered[0].families
            self._rendered = None  # or the text of two reports would be held: 80 MB each of 10,000 models
            for vanished in {each.name for each in before} - {each.name for each in cut.families}:
                del self._prefixes[vanished]
            self._used.clear()
            self._rendered = (cut, [(each, self._lines(each).encode()) for each in cut.families])
            self._escaped = {key: names for key, names in self._escaped.items() if key in self._used}
        return self._rendered[1]

    def _lines(self, family: Family) -> str:
        prefixes = self._prefixes.get(family.name)
        if prefixes is None or prefixes.labels != family.labels or prefixes.bounds != family.bounds:
            prefixes = self._prefixes[family.name] = _Prefixes(family.labels, family.bounds)
        if isinstance(family.samples, Columns):
            return self._column_lines(family, prefixes, family.samples)
        if isinstance(family.samples, ClassSamples):
            return self._class_lines(family, family.samples)
        lines = "".join(_sample_lines(family, prefixes, family.samples))
        prefixes.forget_vanished(family)
        return lines

    def _column_lines(self, family: Family, prefixes: _Prefixes, columns: Columns) -> str:
        """Render the samples in columns, and other samples between them."""
        lines: list[str] = []
        for part in columns.parts:
            if isinstance(part, Column):
                before, after = _around(family, part.keys.before, part.keys.after)
                names, values = self._names(part.keys.models), part.values
                defined = ~np.isnan(values)
                if not defined.all():
                    names, values = list(compress(names, defined.tolist())), values[defined]
                if len(values):
                    ends = map(after.join, zip(names, _numbers(values), strict=True))
                    lines += before, f"\n{before}".join(ends), "\n"
            elif isinstance(part, HistogramColumn):
                around = _histogram_around(family, part.keys)
                names = [name for name in self._names(part.keys.models) for _ in around]
                numbers = np.column_stack([part.counts, part.counts[:, -1], part.totals])
                befores, afters = zip(*around, strict=True)
                values = _numbers(numbers.reshape(-1).astype(np.float64))
                pieces = zip(cycle(befores), names, cycle(afters), values, repeat("\n"), strict=False)
                lines += chain.from_iterable(pieces)
            else:
                lines += _sample_lines(family, prefixes, part)
        others = [sample for part in columns.parts if isinstance(part, list) for sample in part]
        prefixes.forget_vanished(replace(family, samples=others))
        return "".join(lines)

    def _class_lines(self, family: Family, samples: ClassSamples) -> str:
        """Render the samples of classes of all models."""
        groups = [(model, names, values[: len(names)]) for model, names, values in samples.columns()]
        if not groups:
            return ""
        before, after = _around(family, (), (samples.forgetting, ""))
        after = after[: -len('"} ')]  # up to the name of the model
        values = np.concatenate([values for _, _, values in groups])
        defined = ~np.isnan(values)
        numbers, is_defined = iter(_numbers(values[defined])), iter(defined.tolist())
        lines: list[str] = []
        for model, names, of_model in groups:
            shown = list(compress(self._names(names), islice(is_defined, len(of_model))))
            if shown:
                of_classes = f'{after}{_escaped(model)}"}} '.join
                ends = map(of_classes, zip(shown, numbers, strict=False))
                lines += before, f"\n{before}".join(ends), "\n"
        return "".join(lines)

    def _names(self, names: Sequence[str]) -> Sequence[str]:
        """Return names of models or classes as they stand in label values."""
        key = id(names)
        self._used.add(key)
        found = self._escaped.get(key)
        if found is None:
            found = self._escaped[key] = names, list(map(_escaped, names))
        return found[1]


def _around(family: Family, before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, str]:
    """Texts before and after a label value in the lines of a column, without the values of the series.

    `before` and `after` are the values of the other labels, those that sort before and after that label.
    """
    start, end = _labels_around(family, before, after)
    return f"{exposed(family.name)}{{{start}", f"{end}}} "


def _histogram_around(family: Family, keys: ModelKeys) -> list[tuple[str, str]]:
    """Texts before and after the name of a model, for each bucket, for the count and for the sum."""
    start, end = _labels_around(family, keys.before, keys.after)
    name = exposed(family.name)
    bounds = (*family.bounds, float("inf"))
    return [
        *((f"{name}_bucket{{{start}", f'{end},le="{floatToGoString(bound)}"}} ') for bound in bounds),
        (f"{name}_count{{{start}", f"{end}}} "),
        (f"{name}_sum{{{start}", f"{end}}} "),
    ]


def _labels_around(family: Family, before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, str]:
    """Labels before and after a label value, with its quotes."""
    at = len(before)
    first = _pairs(zip(family.labels[:at], before, strict=True))
    last = _pairs(zip(family.labels[at + 1 :], after, strict=True))
    start = f'{first},{family.labels[at]}="' if first else f'{family.labels[at]}="'
    return start, f'",{last}' if last else '"'


def _differ(before: Mapping[Part, int], now: Mapping[Part, int]) -> bool:
    """Tell whether other parts are dropped than before, or a tenth more or less of one."""
    if before.keys() != now.keys():
        return True
    return any(abs(now[part] - count) > 0.1 * count for part, count in before.items())


def _numbers(values: NDArray[np.float64]) -> Sequence[str]:
    """Write values other than NaN as `_number` does, except for the form of exponents."""
    if not len(values):
        return ()
    if not np.isfinite(values).all():
        return list(map(_number, values.tolist()))
    text = f"{_ENCODER.encode(values.tolist())[1:-1].decode()},"
    return text.replace(".0,", ",")[:-1].split(",")


def _sample_lines(family: Family, prefixes: _Prefixes, samples: Sequence[Sample]) -> list[str]:
    scalars, lines = prefixes.scalars, list[str]()
    for values, value in samples:
        if isinstance(value, Histogram):
            lines.append(_histogram_lines(family, prefixes, values, value))
            continue
        number = _number(value)
        if number != "NaN":  # an undefined value is no sample
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
    """Escape a label value; lone surrogates become escapes, so that such a name does not fail a scrape."""
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return value  # not a copy: escaped names are kept
    text = value.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    """Write the shortest text that reads back as the same number; whole numbers have no `.0`."""
    if value.__class__ is int:
        return str(value)
    text = float.__repr__(float(value))  # the repr of NumPy's floats names their type
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
