"""A list of worse models that is looked at every hour names those that are worse, and hardly any other."""

from __future__ import annotations

from tests.calibration import fleet_figures
from tests.calibration.fleet_figures import DELTA, Lists, never_worse, run


def test_a_list_looked_at_every_hour_names_the_worse_models(monkeypatch) -> None:
    monkeypatch.setattr(fleet_figures, "MODELS", 60)
    monkeypatch.setattr(fleet_figures, "WORSE", 3)
    lists = Lists()
    run(lists, 1, 0.8, -0.15, looks=24)
    assert lists.found == [1.0]
    assert sum(lists.false_share) / len(lists.false_share) <= DELTA
    ((false, every),) = lists.ever
    assert false <= 1
    assert every >= 3


def test_a_worse_model_is_worse_than_no_change_as_well_if_it_is_right_less_often_than_that() -> None:
    assert never_worse(fleet_figures.WORSE, "majority", -0.15)
    assert not never_worse(0, "majority", -0.05)
    assert never_worse(0, "persistent_at_prediction", -0.05)
    assert not never_worse(0, "persistent_at_prediction", -0.15)
