"""The dashboards: what their descriptions make, and what Grafana's dashboard-linter asks of every panel."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.grafana.generate import DASHBOARDS, FOLDER, text_of
from deploy.grafana.panels import Panel
from streamwatch.core.estimators.catalogue import BASELINES
from streamwatch.core.metrics.of_the_daemon import DAEMON
from streamwatch.core.metrics.series import PREFIX
from tests.deploy.rules import DEPLOY, unknown_names

PROVISIONING = DEPLOY / "grafana" / "provisioning"
FILES = sorted(FOLDER.glob("*.json"))
UNITS = {"bytes", "cps", "dateTimeFromNow", "none", "percentunit", "s", "short", "string"}
"""In use, and as Grafana names them; a misspelt unit is shown as text behind the number."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
of_each_dashboard = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def read(file) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


def panels(file) -> list[dict[str, Any]]:
    return [panel for panel in read(file)["panels"] if panel["type"] != "row"]


def expressions(dashboard: dict[str, Any]) -> Iterator[str]:
    """Of panels and of annotations."""
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (annotation["expr"] for annotation in dashboard["annotations"]["list"])


def selectors(expr: str) -> list[str]:
    return re.findall(rf"{PREFIX}\w+(?:\{{[^}}]*\}})?", expr)


def test_what_is_committed_is_what_the_descriptions_make() -> None:
    assert {file.name for file in FILES} == set(DASHBOARDS)
    for name, dashboard in DASHBOARDS.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text_of(dashboard), (
            "run: python -m deploy.grafana.generate"
        )


@of_each_dashboard
def test_the_datasource_is_a_variable_everywhere(file) -> None:
    dashboard = read(file)
    (datasource,) = (v for v in dashboard["templating"]["list"] if v["type"] == "datasource")
    assert (datasource["name"], datasource["label"], datasource["query"]) == (
        "datasource",
        "Data source",
        "prometheus",
    )
    found = [holder["datasource"] for holder in holders(dashboard)]
    assert len(found) > len(panels(file))
    assert all(one == DATASOURCE for one in found)


def holders(part: Any) -> Iterator[dict[str, Any]]:
    """Every object that names a datasource."""
    if isinstance(part, dict):
        if "datasource" in part:
            yield part
        for inner in part.values():
            yield from holders(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from holders(inner)


@of_each_dashboard
def test_every_panel_has_title_description_unit_and_queries(file) -> None:
    for panel in panels(file):
        assert panel["title"]
        assert 20 < len(panel["description"]) < 300, panel["title"]
        assert panel["description"].endswith(".")
        assert panel["targets"], panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        overridden = [
            option["value"]
            for override in panel["fieldConfig"]["overrides"]
            for option in override["properties"]
            if option["id"] == "unit"
        ]
        assert {defaults["unit"], *overridden} <= UNITS, panel["title"]


@of_each_dashboard
def test_ids_are_unique_and_panels_do_not_overlap(file) -> None:
    every = read(file)["panels"]
    ids = [panel["id"] for panel in every]
    assert len(ids) == len(set(ids))
    cells = [
        (x, y)
        for area in (panel["gridPos"] for panel in every)
        for x in range(area["x"], area["x"] + area["w"])
        for y in range(area["y"], area["y"] + area["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    for panel in panels(file):
        references = [target["refId"] for target in panel["targets"]]
        assert len(references) == len(set(references))


@of_each_dashboard
def test_every_selector_asks_for_the_chosen_targets(file) -> None:
    chosen = 'job=~"$job", instance=~"$instance"'
    found = [selector for expr in expressions(read(file)) for selector in selectors(expr)]
    assert len(found) > 10
    assert [selector for selector in found if chosen not in selector] == []


@of_each_dashboard
def test_rates_use_the_rate_interval_and_counters_are_rated(file) -> None:
    for expr in expressions(read(file)):
        assert set(re.findall(r"\[([^\]]*)\]", expr)) <= {"$__rate_interval"}, expr
        for selector in selectors(expr):
            counted = re.match(r"\w+", selector)[0].endswith(("_total", "_bucket"))
            rated = re.search(rf"(?:rate|increase)\({re.escape(selector)}\[\$__rate_interval\]\)", expr)
            assert bool(rated) == counted, expr


@of_each_dashboard
def test_variables_are_read_anew_with_the_time_range_and_all_are_defined(file) -> None:
    dashboard = read(file)
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    for name in ("job", "instance"):
        assert variables[name]["multi"]
        assert variables[name]["allValue"] == ".+"
        assert variables[name]["label"] == name.title()
    assert all(v["refresh"] == 2 for v in variables.values() if v["type"] == "query")
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard)))
    assert {name for name in used if not name.startswith("__")} <= set(variables)


@of_each_dashboard
def test_a_dashboard_can_be_found_and_not_be_edited(file) -> None:
    dashboard = read(file)
    assert dashboard["schemaVersion"] >= 39
    assert dashboard["editable"] is False
    assert dashboard["title"].startswith("streamwatch / ")
    assert dashboard["uid"] == f"streamwatch-{file.stem}"
    assert "id" not in dashboard


@pytest.mark.slow
@of_each_dashboard
def test_every_metric_in_a_dashboard_exists(file) -> None:
    dashboard = read(file)
    asked = [*expressions(dashboard), *(v.get("definition", "") for v in dashboard["templating"]["list"])]
    assert {name for expr in asked for name in unknown_names(expr)} == set()


def test_a_dashboard_says_of_caught_up_what_the_metric_says() -> None:
    stated = next(metric.help for metric in DAEMON if metric.name == "caught_up").removesuffix(", else 0.")
    shown = [
        panel["description"] for file in FILES for panel in panels(file) if panel["title"] == "Caught up"
    ]
    assert shown
    assert all(description.startswith(f"{stated}. ") for description in shown)


@of_each_dashboard
def test_drift_alarms_are_marked_at_their_event_time(file) -> None:
    (annotation,) = read(file)["annotations"]["list"]
    assert annotation["useValueForTime"] is True
    assert annotation["expr"].endswith(
        "last_alarm_timestamp_seconds" + annotation["expr"].split("seconds")[1]
    )
    assert annotation["expr"].endswith("* 1000")


@of_each_dashboard
def test_an_override_names_a_column_or_a_legend_that_is_there(file) -> None:
    (dashboard,) = (d for d in DASHBOARDS.values() if d.uid == read(file)["uid"])
    for panel in (panel for row in dashboard.rows for panel in row.panels):
        columns = {query.column for query in panel.queries} | {"model"}
        assert set(panel.columns) <= columns, panel.title
        legends = list(shown(panel))
        assert all(any(re.search(p, legend) for legend in legends) for p in panel.styles), panel.title


def shown(panel: Panel) -> Iterator[str]:
    """Legends, with the names of baselines and of a detector filled in."""
    for query in panel.queries:
        if query.legend == "{{baseline}}":
            yield from (baseline.name for baseline in BASELINES)
        else:
            yield query.legend.replace("{{detector}}", "adwin")


@pytest.mark.real("promtool")
@pytest.mark.parametrize(
    ("title", "opponent", "by_cohorts"),
    [
        ("Worse than no change", "persistent", "persistent_at_prediction"),
        ("Worse than the majority class", "majority", "majority"),
    ],
)
def test_models_are_counted_as_worse_by_the_verdict_that_the_page_shows(
    title: str, opponent: str, by_cohorts: str, tmp_path: Path, real_component: Callable[[str], str]
) -> None:
    (expr,) = (
        target["expr"]
        for panel in panels(FOLDER / "models.json")
        if panel["title"] == title
        for target in panel["targets"]
    )
    target = 'job="j", instance="i"'
    by_labels = f'streamwatch_verdict{{{target}, opponent="{opponent}", model="%s"}}'
    by_prediction = f'streamwatch_cohort_verdict{{{target}, opponent="{by_cohorts}", model="%s"}}'
    headline = f'streamwatch_cohort_headline{{{target}, model="%s"}}'
    series = {
        by_labels % "labels_only": -1,
        by_labels % "worse_by_labels": -1,
        by_prediction % "worse_by_labels": 1,
        headline % "worse_by_labels": 1,
        by_labels % "worse_by_cohorts": 1,
        by_prediction % "worse_by_cohorts": -1,
        headline % "worse_by_cohorts": -1,
        by_prediction % "by_cohorts_only": -1,
        headline % "by_cohorts_only": -1,
        by_labels % "undecided": 1,
        by_prediction % "undecided": -1,  # not yet the headline
    }
    test = {
        "input_series": [{"series": each, "values": str(value)} for each, value in series.items()],
        "promql_expr_test": [
            {
                "expr": expr.replace("$job", "j").replace("$instance", "i"),
                "eval_time": "0m",
                "exp_samples": [{"labels": "{}", "value": 3}],
            }
        ],
    }
    file = tmp_path / "counted.test.yml"
    file.write_text(yaml.safe_dump({"tests": [test]}), encoding="utf-8")
    promtool = real_component("promtool")
    found = subprocess.run([promtool, "test", "rules", file], capture_output=True, check=False, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_grafana_is_configured_with_prometheus_and_the_dashboards() -> None:
    sources = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yml").read_text(encoding="utf-8"))
    (source,) = sources["datasources"]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert (source["type"], source["url"], source["isDefault"]) == (
        "prometheus",
        "http://prometheus:9090",
        True,
    )
    assert source["jsonData"]["timeInterval"] == scraped["global"]["scrape_interval"]
    providers = yaml.safe_load((PROVISIONING / "dashboards" / "streamwatch.yml").read_text(encoding="utf-8"))
    (provider,) = providers["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
    assert provider["allowUiUpdates"] is False
