"""A described dashboard as the JSON that Grafana wants.

Identifiers and places follow from the order, so equal descriptions give equal files.
"""
# ruff: noqa: INP001  # run from the root as `python -m deploy.grafana.generate`, part of no package

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deploy.grafana.panels import Column, Dashboard, Panel, Query, Row, Variable

SCHEMA_VERSION = 39
COLUMNS = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

Json = dict[str, Any]


def dashboard_json(dashboard: Dashboard) -> Json:
    """What Grafana reads."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["streamwatch"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "annotations": {"list": [_annotation(dashboard.alarms)]},
        "templating": {"list": [_datasource(), *map(_variable, dashboard.variables)]},
        "links": [
            {"title": title, "type": "link", "url": url, "keepTime": True, "icon": "dashboard"}
            for title, url in dashboard.links.items()
        ],
        "panels": list(_panels(dashboard.rows)),
    }


def _panels(rows: Sequence[Row]) -> Iterable[Json]:
    number, y = 0, 0
    for row in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
            "panels": [],
        }
        y += 1
        x = tallest = 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            number += 1
            yield _panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": panel.height})
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest


def _panel(panel: Panel, number: int, place: Mapping[str, int]) -> Json:
    made: Json = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": dict(place),
        "targets": [_target(panel.kind, index, query) for index, query in enumerate(panel.queries)],
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "custom": {**_CUSTOM[panel.kind], **panel.custom},
                **panel.defaults,
            },
            "overrides": [*map(_style, *_unzipped(panel.styles)), *map(_column, *_unzipped(panel.columns))],
        },
        "options": _OPTIONS[panel.kind],
    }
    if panel.kind == "heatmap":
        made["options"] = {**_OPTIONS["heatmap"], "yAxis": {"unit": panel.unit}}
    if panel.kind == "table":
        made["transformations"] = _as_one_table(panel.queries)
    if panel.repeat:
        made |= {"repeat": panel.repeat, "repeatDirection": "h", "maxPerRow": 2}
    return made


def _unzipped(named: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    return list(named), list(named.values())


_LEGEND = {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"], "showLegend": True}
_OPTIONS: Mapping[str, Json] = {
    "timeseries": {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
    },
    "table": {"showHeader": True, "cellHeight": "sm", "footer": {"show": False}},
    "heatmap": {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Blues", "steps": 64, "exponent": 0.5, "fill": "dark-blue"},
        "legend": {"show": True},
        "tooltip": {"mode": "single", "yHistogram": True},
    },
}
_CUSTOM: Mapping[str, Json] = {
    "timeseries": {"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": False},
    "stat": {},
    "table": {"align": "auto", "filterable": True},
    "heatmap": {},
}


def _target(kind: str, index: int, query: Query) -> Json:
    shapes = {"table": "table", "heatmap": "heatmap"}
    instant = kind in {"table", "stat"}
    return {
        "refId": chr(ord("A") + index),
        "datasource": DATASOURCE,
        "expr": query.expr,
        "legendFormat": query.legend,
        "format": shapes.get(kind, "time_series"),
        "instant": instant,
        "range": not instant,
    }


def _as_one_table(queries: Sequence[Query]) -> list[Json]:
    """One row for each set of labels, one column for each query, named as it says."""
    names = {f"Value #{chr(ord('A') + index)}": query.column for index, query in enumerate(queries)}
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
    ]


def _style(pattern: str, options: Mapping[str, object]) -> Json:
    return _override("byRegexp", pattern, options)


def _column(name: str, column: Column) -> Json:
    return _override("byName", name, {"unit": column.unit, **column.options})


def _override(matcher: str, options: str, properties: Mapping[str, object]) -> Json:
    listed = [{"id": name, "value": value} for name, value in properties.items()]
    return {"matcher": {"id": matcher, "options": options}, "properties": listed}


def _annotation(expr: str) -> Json:
    return {
        "name": "Drift alarms",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": expr,
        "useValueForTime": True,
        "titleFormat": "{{model}}",
        "textFormat": "{{detector}} declared a drift",
        "step": "15s",
    }


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "refresh": 1,
        "multi": False,
        "includeAll": False,
    }


def _variable(variable: Variable) -> Json:
    made: Json = {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": variable.query,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "multi": variable.several,
        "includeAll": variable.several,
        "current": {},
    }
    if variable.several:
        made |= {"allValue": ".+", "current": {"text": "All", "value": "$__all"}}
    elif variable.value:
        made["current"] = {"text": variable.value, "value": variable.value}
    return made
