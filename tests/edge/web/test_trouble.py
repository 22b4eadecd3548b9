"""What needs a look first: worse, an open incident, a warning, open, better."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from streamwatch.core.alerting.book import details_with_incidents
from streamwatch.core.metrics.series import Family, Histogram, Report
from streamwatch.core.records.events import Alarm, Judgement
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.overview import OverviewExporter
from tests.core.alerting.watched_book import WatchedBook
from tests.edge.web.http_faces import BEGAN_MS, Model, alarm, report_of, worse

JSON = "application/json; charset=utf-8"
HOUR = 3_600.0


def rows(made: Report) -> Any:
    return json.loads(OverviewExporter().render(Asked(made)))["models"]


def with_open_alarm(made: Report, model: str) -> Report:
    """The report as the daemon makes it while an alarm of the model is open."""
    watched = WatchedBook()
    watched.hears(alarm(model, 3), now_ms=BEGAN_MS)
    return replace(made, details=details_with_incidents(made.details, watched.book.open_incidents()))


def changed_verdict(
    model: str, before: int = 1, after: int = 0, ordinal: int = 1, opponent: str = "persistent"
) -> Alarm:
    """The alarm of a change of verdict, a second after the one before."""
    return alarm(
        model,
        ordinal,
        "verdict",
        judgement=Judgement(opponent, after, 1, BEGAN_MS),  # type: ignore[arg-type]
        before=float(before),
        after=float(after),
        event_ms=BEGAN_MS + 1_000 * ordinal,
    )


def test_a_model_that_is_better_and_has_an_open_incident_is_in_trouble() -> None:
    made = report_of({"m": Model(), "n": Model()})
    assert [row["trouble"] for row in rows(made).values()] == ["better", "better"]
    seen = rows(with_open_alarm(made, "m"))
    assert seen["m"]["verdict"] == "better"
    assert (seen["m"]["trouble"], seen["n"]["trouble"]) == ("incident", "better")
    assert seen["m"]["incidents"] == 1
    assert seen["m"]["incident_severity"] == "warning"
    assert seen["m"]["incident_since_timestamp_seconds"] == BEGAN_MS / 1000
    assert not {"incidents", "incident_severity"} & seen["n"].keys()


def test_details_of_an_open_incident_are_its_open_alarms_with_the_errors() -> None:
    (incident,) = with_open_alarm(report_of({}), "m").details["m"]["open_incidents"]  # type: ignore[misc]
    assert incident["severity"] == "warning"
    assert incident["alarms"] == [
        {
            "detector": "adwin",
            "severity": "warning",
            "started_timestamp_seconds": BEGAN_MS / 1000,
            "before": 0.02,
            "after": 0.31,
        }
    ]


def test_the_worst_of_several_troubles_counts() -> None:
    silent = {"nothing_joins": {"predictions": 9}}
    made = report_of({"m": worse(Model()), "n": Model(accuracy=0.8), "o": Model(accuracy=0.8)})
    made = replace(made, details={"m": silent, "n": silent})
    assert {name: row["trouble"] for name, row in rows(made).items()} == {
        "m": "worse",
        "n": "warning",
        "o": "open",
    }
    assert rows(with_open_alarm(made, "n"))["n"]["trouble"] == "incident"
    assert rows(with_open_alarm(made, "m"))["m"]["trouble"] == "worse"


def test_a_row_has_the_verdict_before_the_last_change_of_it() -> None:
    alarms = [
        changed_verdict("m", 0, 1, 1),
        changed_verdict("m", 1, 0, 2),
        changed_verdict("m", 0, -1, 3, "majority"),
        alarm("m", 4),
    ]
    row = rows(report_of({"m": Model(accuracy=0.8)}, 0, alarms))["m"]
    assert row["verdict_before"] == "better"
    assert row["verdict_changed_timestamp_seconds"] == BEGAN_MS / 1000 + 2
    assert "verdict_before" not in rows(report_of({"m": Model()}, 0, [alarm("m")]))["m"]


@pytest.mark.parametrize(
    ("silence", "usual", "stopped"),
    [
        (0.9 * HOUR, 1.0, False),
        (1.1 * HOUR, 1.0, True),
        (9 * HOUR, 5 * HOUR, False),
        (11 * HOUR, 5 * HOUR, True),
    ],
)
def test_labels_have_stopped_when_predictions_are_an_hour_and_twice_the_usual_delay_ahead(
    silence: float,
    usual: float,
    stopped: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    made = report_of({"m": Model()})
    delays = Family(
        "label_delay_seconds",
        "histogram",
        "h",
        ("model",),
        [(("m",), Histogram((0, 9, 9), 1.0))],
        (usual, usual),
    )
    times = [
        Family(f"last_{what}_timestamp_seconds", "gauge", "h", ("model",), [(("m",), at)])
        for what, at in (("prediction", 1e9 + silence), ("label", 1e9))
    ]
    families = [family for family in made.families if family.name != delays.name]
    seen = rows(replace(made, families=[*families, delays, *times]))["m"]
    assert ("labels have stopped" in seen.get("warning", "")) is stopped
    assert seen["trouble"] == ("warning" if stopped else "better")
