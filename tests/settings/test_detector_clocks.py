"""Clocks of detectors in the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamwatch.assembly import specs
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.specs import AdwinDriftSpec, ModelDetectors, MonitorsSpec, PageHinkleySpec
from streamwatch.settings import SettingsError, load

ADWIN, PAGE_HINKLEY = AdwinDriftSpec(), PageHinkleySpec()


def _monitors(tmp_path: Path, monitors: dict[str, Any], **others: dict[str, Any]) -> MonitorsSpec:
    file = tmp_path / "streamwatch.yaml"
    head: dict[str, Any] = {
        "kafka": {"bootstrap_servers": "a:1"},
        "topics": {"predictions": "p", "labels": "l"},
        "join": {"horizon": "64s"},
    }
    for name, values in others.items():
        head[name] = head.get(name, {}) | values
    file.write_text(yaml.safe_dump(head | {"monitors": monitors}))
    return specs.monitors_spec(load(file, environ={}))


def _clocks(spec: MonitorsSpec) -> list[PredictionClockSpec]:
    return [each for each in spec.registers if isinstance(each, PredictionClockSpec)]


@pytest.mark.parametrize("clocks", [{}, {"adwin": "label"}])
def test_detectors_have_the_clock_of_labels_unless_another_is_asked_for(
    tmp_path: Path, clocks: dict[str, str]
) -> None:
    spec = _monitors(tmp_path, {"detector_clocks": clocks})
    assert spec.detectors == (PAGE_HINKLEY, ADWIN)
    assert _clocks(spec) == []


def test_a_detector_with_the_clock_of_predictions_waits_for_the_horizon(tmp_path: Path) -> None:
    spec = _monitors(tmp_path, {"detector_clocks": {"adwin": "prediction"}, "max_unsettled": 7})
    assert spec.detectors == (PAGE_HINKLEY,)
    assert _clocks(spec) == [PredictionClockSpec(64_000, (ADWIN,), (), 7)]


def test_parameters_of_some_models_go_with_their_detectors(tmp_path: Path) -> None:
    own = {"m*": {"page_hinkley": {"threshold": 9.0}, "adwin": {"delta": 0.1}}}
    spec = _monitors(tmp_path, {"detector_clocks": {"adwin": "prediction"}, "detectors_by_model": own})
    assert spec.detectors_by_model == (ModelDetectors("m*", (PageHinkleySpec(threshold=9.0),)),)
    (clock,) = _clocks(spec)
    assert clock.detectors_by_model == (ModelDetectors("m*", (AdwinDriftSpec(delta=0.1),)),)


def test_in_the_order_of_predictions_all_detectors_have_their_clock_already(tmp_path: Path) -> None:
    spec = _monitors(
        tmp_path, {"detector_clocks": {"adwin": "prediction"}}, join={"order": "prediction_time"}
    )
    assert spec.detectors == (PAGE_HINKLEY, ADWIN)
    assert _clocks(spec) == []


def test_a_clock_of_no_detector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no detector is named 'adwn'; did you mean 'adwin'"):
        _monitors(tmp_path, {"detector_clocks": {"adwn": "prediction"}})


def test_the_clock_of_predictions_and_folds_are_refused_together(tmp_path: Path) -> None:
    folds = {"scheme": "cross-validation", "k": 3}
    with pytest.raises(SettingsError, match="expected label where models predict in folds"):
        _monitors(tmp_path, {"detector_clocks": {"adwin": "prediction"}}, folds=folds)
