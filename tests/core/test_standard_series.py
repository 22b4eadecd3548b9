"""Which series a scrape shows unless all are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.metrics.series import (
    ClassNames,
    ClassSamples,
    Columns,
    Family,
    Histogram,
    HistogramColumn,
    ModelKeys,
)
from streamwatch.core.metrics.table import NEEDED, STANDARD, StandardSeries, is_standard
from tests.contracts.families import every_family

FORGETTINGS = ["landmark", "fading:0.999", "sliding:1000"]
MAIN = "fading:0.999"


def by_forgetting(name: str, models: list[str]) -> Family:
    """A column for each forgetting; values count up."""
    columns = Columns()
    for number, forgetting in enumerate(FORGETTINGS):
        values = np.arange(len(models), dtype=np.float64) + number * len(models)
        columns.add(ModelKeys(models, (forgetting,)), values)
    return Family(name, "gauge", "", ("forgetting", "model"), columns)


def test_measures_are_shown_under_the_main_forgetting_as_far_as_rules_read_them() -> None:
    (kappa,) = StandardSeries(FORGETTINGS).chosen([by_forgetting("kappa", ["a", "b"])])
    assert list(kappa.samples) == [((MAIN, "a"), 2.0), ((MAIN, "b"), 3.0)]
    (accuracy,) = StandardSeries(FORGETTINGS).chosen([by_forgetting("accuracy_ratio", ["a", "b"])])
    assert len(accuracy.samples) == 6


def test_what_is_chosen_follows_the_models_when_they_change() -> None:
    standard = StandardSeries(FORGETTINGS)
    for models in (["a"], ["a", "b"], [], ["b"]):
        (kappa,) = standard.chosen([by_forgetting("kappa", models)])
        assert [values for values, _ in kappa.samples] == [(MAIN, model) for model in models]


def test_families_of_no_model_are_left_as_they_are() -> None:
    family = Family("kafka_up", "gauge", "", (), [((), 1.0)])
    assert StandardSeries(FORGETTINGS).chosen([family]) == [family]


def test_samples_that_are_in_no_column_are_chosen_too() -> None:
    samples = [(("a", opponent), 1.0) for opponent in ("persistent", "majority", "minority")]
    (lead,) = StandardSeries(FORGETTINGS).chosen(
        [Family("lead", "gauge", "", ("model", "opponent"), samples)]
    )
    assert [values[1] for values, _ in lead.samples] == ["persistent", "majority"]


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_all_that_rules_and_dashboards_read_is_standard(name: str) -> None:
    (family,) = (each for each in every_family() if each.name == name)
    labels = {label: MAIN if label == "forgetting" else "persistent" for label in family.labels}
    labels |= {"bound": "hoeffding"} if "bound" in labels else {}
    assert is_standard(name, labels, MAIN)


def test_every_name_of_the_standard_series_is_a_metric() -> None:
    assert set(STANDARD) <= {family.name for family in every_family()}


@pytest.mark.parametrize("name", [name for name, wanted in STANDARD.items() if not wanted])
def test_series_of_common_use_are_shown_whatever_their_other_labels_are(name: str) -> None:
    assert is_standard(name, {"model": "m", "forgetting": "landmark", "kind": "any"}, MAIN)
    assert not is_standard(f"{name}_of_no_use", {"model": "m"}, MAIN)


def test_classes_are_shown_or_left_out_as_a_whole_in_either_form() -> None:
    samples = ClassSamples(MAIN)
    samples.add("m", ClassNames(["a", "b"]), np.array([0.5, 0.25]))
    labels = ("class", "forgetting", "model")
    plain = [(("a", MAIN, "m"), 0.5), (("b", MAIN, "m"), 0.25)]
    families = [
        Family(name, "gauge", "", labels, each)
        for name in ("recall_ratio", "f1_ratio")
        for each in (samples, plain)
    ]
    assert StandardSeries(FORGETTINGS).chosen(families) == families[:2]


def test_single_samples_and_histograms_of_columns_are_chosen_as_well() -> None:
    columns = Columns()
    columns.extend([((MAIN, "a"), 1.0), (("landmark", "a"), 2.0)])
    columns.add(ModelKeys(["b"], ("landmark",)), np.array([3.0]))
    columns.extend([((MAIN, "c"), 4.0)])
    (kappa,) = StandardSeries(FORGETTINGS).chosen(
        [Family("kappa", "gauge", "", ("forgetting", "model"), columns)]
    )
    assert list(kappa.samples) == [((MAIN, "a"), 1.0), ((MAIN, "c"), 4.0)]
    delays = Columns()
    delays.add_part(HistogramColumn(ModelKeys(["a", "b"]), np.array([[1, 3], [2, 2]]), np.array([0.5, 7.0])))
    (shown,) = StandardSeries(FORGETTINGS).chosen(
        [Family("label_delay_seconds", "histogram", "", ("model",), delays, (60.0,))]
    )
    assert list(shown.samples) == [(("a",), Histogram((1, 3), 0.5)), (("b",), Histogram((2, 2), 7.0))]
