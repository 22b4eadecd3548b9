"""The list of models: what is asked for, in its order, with the counts of all and the past of those shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.history import LINE_POINTS, LINE_SECONDS, HistoryExporter
from streamwatch.edge.web.routes.listing import WARNED, ListingExporter, beginning_of, name_key
from streamwatch.edge.web.routes.overview import OverviewExporter
from tests.edge.web.http_faces import Model, report_of, worse
from tests.edge.web.test_trouble import with_open_alarm

JSON = "application/json; charset=utf-8"
SILENT = {"nothing_joins": {"predictions": 9}}


def listed(made: Report | None, history: HistoryExporter | None = None, **asked: str) -> Any:
    exporter = ListingExporter((history or HistoryExporter()).lines)
    return json.loads(exporter.render(Asked(made, asked)))


def test_rows_with_details_are_those_of_the_overview() -> None:
    made = report_of({"a": Model(), "b": worse(Model())})
    rows = json.loads(OverviewExporter().render(Asked(made)))["models"]
    assert listed(made, details="1")["rows"] == rows
    brief = listed(made)["rows"]
    assert brief.keys() == rows.keys()
    for name, row in brief.items():
        assert row["verdict"] == rows[name]["verdict"]
        assert row["accuracy"] == pytest.approx(rows[name]["accuracy"], abs=5e-5)
        assert not {"outcomes", "kappa_plus", "lead", "pending"} & row.keys()


def test_what_needs_a_look_comes_first_and_is_counted_over_all_models() -> None:
    models = {"fine": Model(), "poor": worse(Model()), "dropped": Model(), "silent": Model(accuracy=0.8)}
    made = replace(report_of(models), details={"silent": SILENT})
    reported = listed(with_open_alarm(made, "dropped"), rows="2")
    assert reported["names"] == ["poor", "dropped"]
    assert reported["rows"].keys() == set(reported["names"])
    assert reported["found"] == 4
    assert reported["counts"] == {
        "models": 4,
        "better": 2,
        "open": 1,
        "worse": 1,
        "waiting": 0,
        "incidents": 1,
        "warnings": 1,
    }
    assert reported["warned"] == [
        {
            "model": "silent",
            "warning": "no label has matched any of 9 predictions",
            "page": "deploy/runbooks/NothingJoins.md",
        }
    ]


def test_models_are_found_by_their_labels() -> None:
    made = report_of({"fraud": Model(), "loan": Model(), "plain": Model()})
    labels = {"fraud": {"team": "payments", "tier": "gold"}, "loan": {"team": "pay", "tier": "gold"}}
    made = replace(made, details={name: {"labels": each} for name, each in labels.items()})
    assert listed(made, label="team=pay")["names"] == ["loan"]
    assert listed(made, label="tier=gold")["names"] == ["fraud", "loan"]
    assert listed(made, label="tier=go")["names"] == []
    assert listed(made, filter="TEAM=pay")["names"] == ["fraud", "loan"]
    rows = listed(made)["rows"]
    assert rows["fraud"]["labels"] == "team=payments, tier=gold"
    assert "labels" not in rows["plain"]


def test_a_label_whose_value_has_commas_is_one_label() -> None:
    made = report_of({"both": Model(), "one": Model()})
    labels = {"both": {"note": "see x, tier=gold", "team": "pay, risk"}, "one": {"team": "pay"}}
    made = replace(made, details={name: {"labels": each} for name, each in labels.items()})
    assert listed(made, label="team=pay")["names"] == ["one"]
    assert listed(made, label="team=pay, risk")["names"] == ["both"]
    assert listed(made, label="tier=gold")["names"] == []


def test_only_the_first_warnings_are_reported_by_name() -> None:
    names = [f"m{n}" for n in range(WARNED + 7)]
    made = replace(report_of({name: Model() for name in names}), details=dict.fromkeys(names, SILENT))
    assert [each["model"] for each in listed(made)["warned"]] == names[:WARNED]


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_models_without_the_value_come_last_in_either_order(order: str) -> None:
    last = {"a": None, "b": 1_760_000_000.0, "c": 1_760_000_009.0}
    made = report_of({name: Model(last_alarm=at) for name, at in last.items()})
    names = listed(made, sort="last_alarm", order=order)["names"]
    assert names == (["b", "c", "a"] if order == "ascending" else ["c", "b", "a"])


def test_a_page_beyond_the_last_is_the_last() -> None:
    made = report_of({f"m{n}": Model() for n in range(23)})
    reported = listed(made, sort="model", first="900", rows="10")
    assert (reported["first"], reported["names"]) == (20, ["m20", "m21", "m22"])
    assert listed(report_of({}), first="900")["names"] == []


def test_models_are_found_by_a_part_of_their_name_by_group_and_by_name() -> None:
    made = report_of({name: Model() for name in ("fraud-v1", "fraud-v10", "FRAUD-v2", "churn", "churn-eu")})
    assert listed(made, filter="RAUD-V1")["names"] == ["fraud-v1", "fraud-v10"]
    assert listed(made, prefix="fraud-")["names"] == ["fraud-v1", "fraud-v10"]
    assert listed(made, prefix="churn")["names"] == ["churn"]
    assert listed(made, model="churn-eu")["names"] == ["churn-eu"]
    assert listed(made, model="nobody")["names"] == []


def test_models_without_an_outcome_yet_are_not_counted_as_open() -> None:
    made = report_of({"a-judged": Model(accuracy=0.8)})
    name, seen = "model_predictions_total", [(("a-new",), 40.0), (("a-judged",), 9.0)]
    read = Family(name, "counter", "h", ("model",), seen)
    name, matched = "model_predictions_joined_total", [(("a-new",), 0.0), (("a-judged",), 9.0)]
    met = Family(name, "counter", "h", ("model",), matched)
    reported = listed(replace(made, families=(*made.families, read, met)))
    assert reported["rows"]["a-new"]["verdict"] == "open"
    assert (reported["counts"]["open"], reported["counts"]["waiting"]) == (1, 1)
    (group,) = listed(replace(made, families=(*made.families, read, met)), group="1")["groups"]
    assert (group["models"], group["open"], group["waiting"]) == (2, 1, 1)


def test_groups_count_their_models_by_trouble_the_worst_first() -> None:
    models = {"a-1": Model(), "a-2": Model(), "b-1": worse(Model()), "b-2": Model(accuracy=0.8)}
    reported = listed(report_of(models), group="1")
    assert reported["names"] == []
    assert [(g["prefix"], g["models"], g["worse"], g["open"], g["better"]) for g in reported["groups"]] == [
        ("b-", 2, 1, 1, 0),
        ("a-", 2, 0, 0, 2),
    ]


@given(st.text(min_size=1, max_size=40))
def test_every_name_begins_with_its_group_and_has_a_key(name: str) -> None:
    assert beginning_of(name)
    assert name.startswith(beginning_of(name))
    assert name_key(name) == name_key(name)


@given(st.lists(st.text(min_size=1, max_size=12), unique=True, max_size=20))
def test_no_two_names_are_equal_in_their_order(names: list[str]) -> None:
    assert len({name_key(name) for name in names}) == len(names)


def test_numbers_in_names_are_in_their_order() -> None:
    assert sorted(["m10", "m9", "M2", "m"], key=name_key) == ["m", "M2", "m9", "m10"]


def test_lines_are_the_last_values_of_equal_stretches_of_the_last_hours() -> None:
    history = HistoryExporter()
    made = None
    hours = LINE_SECONDS // 3_600 + 2
    for second in range(0, hours * 3_600, 60):
        made = report_of({"a": Model(accuracy=0.9 - 0.3 * (second >= 7 * 3_600)), "b": Model()}, second)
        history.observe(made)
    lines = listed(made, history, lines="1", filter="a")["lines"]
    assert lines["models"].keys() == {"a"}
    times, line = lines["timestamps"], lines["models"]["a"]
    assert len(times) <= LINE_POINTS + 1
    assert times == sorted(times)
    assert times[-1] - times[0] <= LINE_SECONDS
    assert times[-1] - times[0] > 0.9 * LINE_SECONDS
    assert {name: len(values) for name, values in line.items()} == dict.fromkeys(line, len(times))
    began = (made.published_ms / 1000 if made else 0) - (hours * 3_600 - 60)
    assert line["accuracy"] == [0.9 if at < began + 7 * 3_600 else 0.6 for at in times]
    assert set(line["no_change"]) == {0.8}
    assert set(line["majority"]) == {0.6}


def test_a_model_without_outcomes_has_a_line_without_values_and_one_with_sampled_labels_has_none() -> None:
    history = HistoryExporter()
    made = report_of({"a": Model(), "s": Model()})
    leads = {"persistent_at_prediction": {"verdict": "open"}, "majority": {"verdict": "open"}}
    made = replace(made, details={"s": {"sampled_labels": {"leads": leads, "share_expected": 0.1}}})
    assert listed(made, history, lines="1")["lines"] == {"timestamps": [], "models": {}}
    history.observe(made)
    lines = listed(made, history, lines="1")["lines"]["models"]
    assert lines.keys() == {"a"}
    later = report_of({"a": Model(), "new": Model()}, 1)
    assert set(listed(later, history, lines="1")["lines"]["models"]["new"]["accuracy"]) == {None}


def test_before_the_first_report_the_list_is_empty() -> None:
    reported = listed(None, lines="1")
    assert (reported["names"], reported["counts"]["models"], reported["published_timestamp_seconds"]) == (
        [],
        0,
        None,
    )
