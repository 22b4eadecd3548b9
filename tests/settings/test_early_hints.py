"""Early hints in the settings: off, on with defaults or others, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamwatch.assembly import specs
from streamwatch.assembly.alerts import alarms_spec
from streamwatch.assembly.state import state_opening
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.register import EarlyHints
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.daemon.source_positions import POSITIONS
from streamwatch.settings import Settings, SettingsError, load
from streamwatch.telemetry import Telemetry

HEAD: dict[str, Any] = {
    "kafka": {"bootstrap_servers": "a:1"},
    "topics": {"predictions": "p", "labels": "l"},
    "join": {"horizon": "64s"},
}
RULE = {"detector": "early_hint", "severity": "info"}


def read(folder: Path, monitors: dict[str, Any]) -> Settings:
    file = folder / "streamwatch.yaml"
    file.write_text(yaml.safe_dump(HEAD | {"monitors": monitors}))
    return load(file, environ={})


def registers(folder: Path, monitors: dict[str, Any]) -> object:
    return specs.join_spec(read(folder, monitors)).prediction_registers


def test_they_are_off_unless_asked_for_and_then_have_the_buckets_of_late_labels(tmp_path: Path) -> None:
    assert registers(tmp_path, {}) == ()
    assert registers(tmp_path, {"early_hints": None}) == ()
    assert registers(tmp_path, {"early_hints": {}}) == (EarlyHintsSpec(bucket_ms=1_500),)
    chosen = {"predictions": 2_000_000, "delta": 0.01, "reach": 61_440, "max_models": 7}
    assert registers(tmp_path, {"early_hints": chosen}) == (
        EarlyHintsSpec(2_000_000, 0.01, 61_440, 7, 1_500),
    )


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ({"reach": 4_095}, r"monitors\.early_hints\.reach"),
        ({"delta": 0}, r"monitors\.early_hints\.delta"),
        ({"reach": 200_000}, r"reach: expected at most predictions \(100000\), got 200000"),
        ({"models": 3}, r"monitors\.early_hints\.models"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_key(tmp_path: Path, wrong: dict[str, Any], shown: str) -> None:
    with pytest.raises(SettingsError, match=shown):
        read(tmp_path, {"early_hints": wrong})


@pytest.mark.parametrize("notify", [True, False])
@pytest.mark.parametrize("join", ["resolution", "prediction_time"])
def test_receivers_are_notified_of_hints_only_where_that_is_asked_for(
    tmp_path: Path,
    notify: bool,  # noqa: FBT001 - a parameter
    join: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = ActiveHint(1, 5, "b", more=True, before=0.1, now=0.4)
    monkeypatch.setattr(EarlyHints, "active_hints", lambda _: {"m": given})
    file = tmp_path / "streamwatch.yaml"
    chosen = HEAD | {"monitors": {"early_hints": {"notify": notify}}, "state": {"kind": "memory"}}
    chosen["join"] = chosen["join"] | {"order": join}
    chosen["alerts"] = {"severity": "error", "rules": [{"detector": "*", "model": "m", "severity": "info"}]}
    file.write_text(yaml.safe_dump(chosen))
    state = state_opening(load(file, environ={}), {}, Telemetry(stream=io.StringIO()))()
    assert state.alerting is not None
    reported = state.alerting.decide([], [], in_backlog=False, behind=False).notifications
    assert [(each.model, each.severity, each.hint and each.hint.as_notified) for each in reported] == [
        ("m", "info", given)
    ] * notify
    state.store.close()


def test_a_hint_that_stands_is_reported_once_each_time_that_notify_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ActiveHint(1, 5, "b", more=True, before=0.1, now=0.4)
    later = ActiveHint(2, 90_000_000, "b", more=True, before=0.1, now=0.4)
    active = {"m": given}
    monkeypatch.setattr(EarlyHints, "active_hints", lambda _: active)

    def reported(*, notify: bool) -> list[tuple[str, str]]:
        """Kind and incident of what one life notifies, which then commits and ends."""
        file = tmp_path / "streamwatch.yaml"
        monitors = {"early_hints": {"notify": notify}}
        chosen = HEAD | {"monitors": monitors, "state": {"directory": str(tmp_path / "state")}}
        file.write_text(yaml.safe_dump(chosen))
        state = state_opening(load(file, environ={}), {}, Telemetry(stream=io.StringIO()))()
        assert state.alerting is not None
        decided = state.alerting.decide([], [], in_backlog=False, behind=False)
        positions = {POSITIONS: state.source_positions.encode()}
        changes = state.checkpoint.changes({**positions, **decided.sections}, decided.outbox)
        state.store.commit(changes)
        state.store.flush()
        state.store.close()
        return [(each.kind, each.incident) for each in decided.notifications]

    ((kind, incident),) = reported(notify=True)
    assert kind == "firing"
    assert reported(notify=True) == []
    assert reported(notify=False) == [("resolved", incident)]
    assert reported(notify=False) == []
    ((kind, anew),) = reported(notify=True)
    assert (kind, anew != incident) == ("firing", True)
    assert reported(notify=True) == []
    assert reported(notify=False) == [("resolved", anew)]
    active["m"] = later
    ((kind, of_later),) = reported(notify=True)
    assert (kind, of_later in {incident, anew}) == ("firing", False)


def test_a_rule_for_early_hints_is_refused_where_nobody_is_notified_of_them(tmp_path: Path) -> None:
    for notify in (True, False):
        file = tmp_path / "streamwatch.yaml"
        chosen = {"monitors": {"early_hints": {"notify": notify}}, "alerts": {"rules": [RULE]}}
        file.write_text(yaml.safe_dump(HEAD | chosen))
        settings = load(file, environ={})
        if notify:
            assert alarms_spec(settings).rule("m", "early_hint").severity == "info"
            assert alarms_spec(settings).rule("m", "adwin").severity == "warning"
        else:
            with pytest.raises(SettingsError, match=r"alerts\.rules\[0\]\.detector: expected a pattern of"):
                alarms_spec(settings)
