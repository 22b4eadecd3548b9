"""What a dashboard is described with: titles, what to read from a panel, queries, units."""
# ruff: noqa: INP001  # run from the root as `python -m deploy.grafana.generate`, part of no package

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL expression; `legend` may name labels, `column` is its name in a table."""

    expr: str
    legend: str = "__auto"
    column: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """How a table shows one query's column: its unit, and further field options."""

    unit: str
    options: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `styles` are field options by a pattern of legends (`/upper/`)."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str
    kind: Literal["timeseries", "stat", "table", "heatmap"] = "timeseries"
    width: int = 12
    height: int = 8
    defaults: Mapping[str, object] = field(default_factory=dict[str, object])
    custom: Mapping[str, object] = field(default_factory=dict[str, object])
    styles: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    columns: Mapping[str, Column] = field(default_factory=dict[str, Column])
    repeat: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A heading, and the panels below it."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice on top of the dashboard: the values of `label` on `metric`."""

    name: str
    label: str
    query: str
    several: bool = False
    value: str = ""
    """Chosen at first; for `several`, all are."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard; `alarms` is a query whose values are times in ms, marked in every panel."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    alarms: str
    links: Mapping[str, str] = field(default_factory=dict[str, str])
