"""What the shipped rules and dashboards read is in a scrape of 1,000 models under the default limit.

What they read is taken from their queries alone: every selector, its matchers, and through recording rules
the selectors of what is recorded. A dashboard's `$forgetting` is the main one, which it starts with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from deploy.grafana.generate import DASHBOARDS, text_of
from streamwatch.core.metrics.series import Family, Report, exposed
from streamwatch.core.metrics.series_budget import SeriesBudget, lines_of
from streamwatch.core.metrics.table import NEEDED, is_needed
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from tests.contracts.families import every_family
from tests.deploy.rules import recorded, rules
from tests.edge.web.exposition import PLAIN, PUBLISHED_MS, families_of, realistic

MAIN = "fading:0.999"
LIMIT = MonitorsSpec().max_series
_SELECTOR = re.compile(
    r'([a-zA-Z_][\w:]*streamwatch_\w+[\w:]*|streamwatch_\w+)(\{(?:[^}"]|"(?:[^"\\]|\\.)*")*\})?'
)
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
_PARTS_OF_A_MODEL = {"class", "value", "fold"}
"""Labels of series that go first, even where a dashboard shows them."""


@dataclass(frozen=True)
class Selector:
    """A metric and the matchers of its labels."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(_matches(labels.get(label, ""), kind, value) for label, kind, value in self.matchers)


def _matches(actual: str, kind: str, value: str) -> bool:
    if value == "$forgetting":
        value = MAIN
    elif value.startswith("$"):  # whatever is chosen
        return True
    found = actual == value if kind in {"=", "!="} else re.fullmatch(value, actual) is not None
    return found == (kind in {"=", "=~"})


def selectors_in(expr: str, within: frozenset[str] = frozenset()) -> Iterator[Selector]:
    """Selectors of an expression; those of recorded names are those of what is recorded, narrowed down.

    A recorded name within its own rule is that of the evaluation before, and needs nothing else.
    """
    for name, matchers in _SELECTOR.findall(expr):
        own = tuple(each for each in _MATCHER.findall(matchers) if each[0] not in {"job", "instance"})
        if name not in recorded():
            yield Selector(name, own)
            continue
        for rule in rules() if name not in within else ():
            if rule.get("record") == name:
                found = selectors_in(rule["expr"], within | {name})
                yield from (Selector(each.name, each.matchers + own) for each in found)


def queries() -> Iterator[str]:
    """Every query of alerts, and of dashboards: of panels, variables and annotations.

    What is recorded is looked for as its readers ask for it; what nothing here reads, as it is recorded.
    """
    read = " ".join(rule["expr"] for rule in rules())
    for rule in rules():
        if "alert" in rule or not re.search(rf"{rule['record']}(?![\w:])", read):
            yield rule["expr"]
    for dashboard in DASHBOARDS.values():
        for text in re.findall(r'"(?:expr|query|definition)": ("(?:[^"\\]|\\.)*")', text_of(dashboard)):
            yield json.loads(text)


def needed() -> Mapping[str, Sequence[Selector]]:
    """All selectors by the name of the family."""
    names = {exposed(f.name) + s: f.name for f in every_family() for s in ("", "_bucket", "_sum", "_count")}
    found: dict[str, list[Selector]] = {}
    for expr in queries():
        for selector in selectors_in(expr):
            found.setdefault(names[selector.name], []).append(selector)
    return found


def of_models() -> list[Family]:
    """Families whose series belong to models, in as far as they are not the first to go."""
    return [f for f in every_family() if "model" in f.labels and not _PARTS_OF_A_MODEL & set(f.labels)]


def read_by(found: Mapping[str, Sequence[Selector]]) -> Callable[[str, Mapping[str, str]], bool]:
    return lambda name, labels: any(each.matches(labels) for each in found.get(name, ()))


def test_the_table_of_needed_series_is_what_the_queries_read() -> None:
    found = needed()
    assert len(found) > 60
    assert set(NEEDED) == {family.name for family in of_models()} & set(found)
    is_read = read_by(found)
    for family in families_of(of_models(), models=1):
        for values, _ in family.samples:
            labels = dict(zip(family.labels, values, strict=True))
            if is_read(family.name, labels):
                assert is_needed(family.name, labels, MAIN), (family.name, labels)


def test_what_lies_behind_a_recorded_name_is_read_with_the_matchers_of_its_reader() -> None:
    (found,) = selectors_in('model_forgetting:streamwatch_accuracy:lower{forgetting="landmark"} > 0')
    assert found.name == "streamwatch_accuracy_bound_ratio"
    assert set(found.matchers) == {("bound", "=", "hoeffding"), ("forgetting", "=", "landmark")}
    assert found.matches({"bound": "hoeffding", "forgetting": "landmark"})
    assert not found.matches({"bound": "hoeffding", "forgetting": MAIN})


@pytest.mark.slow
def test_a_thousand_models_under_the_default_limit_have_all_that_rules_and_dashboards_read() -> None:
    names = {family.name for family in realistic(1, 1)}
    report = [
        *realistic(1_000, 3),
        *families_of([f for f in of_models() if f.name not in names], models=1_000),
    ]
    assert sum(map(lines_of, report)) > 1.5 * LIMIT
    exporter = PrometheusExporter(SeriesBudget.of(MonitorsSpec()))
    text = exporter.render(Asked(Report(report, PUBLISHED_MS, {}), media_type=PLAIN)).decode()
    lines = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert 0.94 * LIMIT <= len(lines) <= LIMIT
    shown = set(lines)
    is_read = read_by(needed())
    missing = [
        line
        for family in report
        if "model" in family.labels and not _PARTS_OF_A_MODEL & set(family.labels)
        for values, _ in family.samples
        if is_read(family.name, dict(zip(family.labels, values, strict=True)))
        for line in lines_of_series(family, values)
        if line not in shown
    ]
    assert missing == []


def lines_of_series(family: Family, values: tuple[str, ...]) -> Iterator[str]:
    """A series as an exposition names it; of a histogram one bucket, the sum and the count."""
    pairs = ",".join(f'{label}="{value}"' for label, value in zip(family.labels, values, strict=True))
    name = exposed(family.name)
    if family.kind == "histogram":
        yield f'{name}_bucket{{{pairs},le="+Inf"}}'
        yield f"{name}_sum{{{pairs}}}"
        yield f"{name}_count{{{pairs}}}"
    else:
        yield f"{name}{{{pairs}}}"
