"""The monitors section is the catalogue's: its kinds, ranges and defaults, read as the core's specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamwatch.assembly import specs
from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.entries import Entry, Parameter
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DetectorSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    champion_of,
)
from streamwatch.settings import Settings, SettingsError, example, json_schema, load
from streamwatch.settings.monitors import MonitorsSection

HEAD: dict[str, Any] = {
    "kafka": {"bootstrap_servers": "a:1"},
    "topics": {"predictions": "p", "labels": "l"},
}
AS_SETTINGS = MonitorsSpec(registers=(LateLabelsSpec(), ProbabilitiesSpec(), CohortsSpec()))
"""What settings that say nothing ask for: registers are chosen by settings, the core has none of its own."""
RANGES = [
    (kind, entry, parameter)
    for kind, entries in (("forgetting", catalogue.MECHANISMS), ("detectors", catalogue.DETECTORS))
    for entry in entries
    for parameter in entry.parameters
]


def read(folder: Path, monitors: dict[str, Any]) -> Settings:
    file = folder / "streamwatch.yaml"
    file.write_text(yaml.safe_dump(HEAD | {"monitors": monitors}))
    return load(file, environ={})


def test_the_defaults_of_the_settings_are_those_of_the_core(tmp_path: Path) -> None:
    assert specs.monitors_spec(read(tmp_path, {})) == AS_SETTINGS


def test_an_entry_is_read_as_the_specification_of_its_kind(tmp_path: Path) -> None:
    monitors = read(
        tmp_path,
        {
            "forgetting": ["landmark", "adwin", {"fading": {"alpha": 0.5}}, {"fading": {"half_life": 1}}],
            "detectors": [{"page_hinkley": {"name": "slow", "direction": "both"}}, {"adwin": None}],
        },
    ).monitors
    assert monitors.forgetting == (LandmarkSpec(), AdwinSpec(), FadingSpec(0.5), FadingSpec(0.5))
    assert monitors.detectors == (PageHinkleySpec(name="slow", direction="both"), AdwinDriftSpec())


@pytest.mark.parametrize(
    ("kind", "entry", "parameter"), RANGES, ids=[f"{k}-{e.name}-{p.name}" for k, e, p in RANGES]
)
def test_a_value_out_of_the_catalogues_range_is_refused_in_its_words(
    tmp_path: Path, kind: str, entry: Entry, parameter: Parameter
) -> None:
    wrong = "sideways" if parameter.choices else -1 if parameter.whole else -1.0
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, {kind: [{entry.name: {parameter.name: wrong}}]})
    assert str(caught.value).startswith(f"monitors.{kind}[0].{parameter.name} in ")
    if not parameter.choices:
        assert str(caught.value).endswith(str(parameter.problem(wrong)))


def test_drift_weighting_has_the_catalogues_range_too(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"average weight after a drift must be in \(1, 1000\], got 1"):
        read(tmp_path, {"drift_weighted": {"w_avg": 1}})
    assert catalogue.parameter(DriftWeightedSpec, "w_avg").high == 1_000


def test_the_catalogue_lists_drift_weighted_accuracies_under_the_name_of_their_setting() -> None:
    assert "drift_weighted" in MonitorsSection.model_fields
    assert "drift_weighted" in catalogue.Listed.__struct_fields__


def test_drift_weighting_is_one_mapping_or_a_list_or_nothing(tmp_path: Path) -> None:
    def drift_weighted(written: Any) -> tuple[DriftWeightedSpec, ...]:
        return specs.monitors_spec(read(tmp_path, {"drift_weighted": written})).drift_weighted

    assert drift_weighted(None) == ()
    assert drift_weighted({"w_avg": 5}) == (DriftWeightedSpec(5.0),)
    both = [{"drift_signal": "labels"}, {"drift_signal": "reference", "reference": "champion", "alpha": 0.99}]
    assert drift_weighted(both) == (
        DriftWeightedSpec(drift_signal="labels"),
        DriftWeightedSpec(drift_signal="reference", reference="champion", alpha=0.99),
    )
    with pytest.raises(SettingsError, match="reference needs the name of a model in reference"):
        drift_weighted({"drift_signal": "reference"})
    with pytest.raises(SettingsError, match="is listed twice"):
        drift_weighted([{}, {}])
    with pytest.raises(
        SettingsError, match=r"drift_weighted\[0\]\.w_agv in .*: unknown key; did you mean 'w_avg'"
    ):
        drift_weighted({"w_agv": 3})


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2])
def test_the_confidence_of_bounds_is_a_probability(tmp_path: Path, delta: float) -> None:
    with pytest.raises(SettingsError, match=r"confidence_delta must be in \(0, 1\)"):
        read(tmp_path, {"confidence_delta": delta})


def test_the_confidence_of_bounds_reaches_the_estimators(tmp_path: Path) -> None:
    assert specs.monitors_spec(read(tmp_path, {"confidence_delta": 0.01})).confidence_delta == 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", [*catalogue.MECHANISMS, *catalogue.DETECTORS], ids=lambda e: e.spec.__name__
)
def test_the_schema_explains_every_parameter_with_its_range(entry: Entry) -> None:
    if not entry.parameters:
        return
    section = json_schema()["$defs"][f"{entry.spec.__name__.removesuffix('Spec')}Section"]
    for parameter in entry.parameters:
        described = section["properties"][parameter.name]
        assert described["description"] == parameter.help
        assert described["default"] == entry.defaults()[parameter.name]
        assert described.items() >= parameter.bounds.items()


def test_the_example_writes_the_defaults_as_they_are_read(tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    file.write_text(example())
    assert specs.monitors_spec(load(file, environ={})) == AS_SETTINGS


def test_probabilities_are_measured_under_the_chosen_forgettings_unless_switched_off(tmp_path: Path) -> None:
    chosen = {
        "forgetting": ["landmark", {"fading": {"alpha": 0.9}}, {"adwin": {"delta": 0.01}}],
        "probabilities": {"auc_outcomes": 50},
        "cohort_verdicts": False,
    }
    _, spec = specs.monitors_spec(read(tmp_path, chosen)).registers
    assert spec == ProbabilitiesSpec(True, (0.9,), (), ((0.01, 5, 32, "followed"),), 50, 16)
    off = {"probabilities": None, "cohort_verdicts": False}
    assert specs.monitors_spec(read(tmp_path, off)).registers == (LateLabelsSpec(),)
    with pytest.raises(SettingsError, match="max_auc_classes"):
        read(tmp_path, {"probabilities": {"max_auc_classes": 1}})


def test_a_measure_that_segments_cannot_have_is_refused(tmp_path: Path) -> None:
    assert read(tmp_path, {"segments": {"measures": ["kappa", "mcc"]}}).monitors.segments.measures
    for measure in ("kappa_majority_prequential", "kappas"):
        with pytest.raises(SettingsError, match=f"expected some of .*, each once, got '{measure}'"):
            read(tmp_path, {"segments": {"measures": [measure]}})


def test_comparisons_are_a_champion_with_patterns_or_pairs_by_name(tmp_path: Path) -> None:
    monitors = {
        "comparisons": [
            {"champion": "fraud-v3", "challengers": ["fraud-*", "b"]},
            {"pairs": [["a", "b"], ["a", "c[1]*"]]},
        ],
        "max_comparisons": 7,
    }
    settings = read(tmp_path, monitors)
    found = specs.monitors_spec(settings)
    assert found.max_comparisons == 7
    assert found.comparisons == specs.join_spec(settings).comparisons
    for one, other, champion in (
        ("fraud-v3", "fraud-v4", "fraud-v3"),
        ("a", "b", "a"),
        ("a", "c[1]*", "a"),
        ("a", "c1x", None),  # what is named in a pair is no pattern
        ("b", "fraud-v3", "fraud-v3"),
        ("fraud-v4", "fraud-v5", None),
    ):
        assert champion_of(found.comparisons, one, other) == champion


@pytest.mark.parametrize(
    ("comparison", "shown"),
    [
        ({"champion": "a"}, r"comparisons\[0\].*: champion needs challengers and vice versa"),
        ({"challengers": ["a"]}, "champion needs challengers and vice versa"),
        ({"champion": "a", "challengers": [""]}, "none of them may be empty"),
        ({}, "expected champion and challengers, or pairs"),
        (
            {"champion": "a", "challengers": ["b"], "pairs": [["a", "c"]]},
            "expected champion and challengers, or",
        ),
        ({"pairs": [["a", "a"]]}, r"expected a pair of two different models, got \['a', 'a'\]"),
        ({"pairs": [["a", "b"], ["a", "b"]]}, "a is compared with b twice"),
        ({"pairs": [["a", "b"], ["b", "a"]]}, "b and a are each the champion of the other"),
        ({"champions": "a"}, "did you mean 'champion'"),
    ],
)
def test_a_comparison_that_says_nothing_clear_is_refused(
    tmp_path: Path, comparison: dict[str, Any], shown: str
) -> None:
    with pytest.raises(SettingsError, match=shown):
        read(tmp_path, {"comparisons": [comparison]})


def test_detectors_of_some_models_differ_in_the_parameters_that_are_given(tmp_path: Path) -> None:
    asked = {
        "detectors": ["adwin", {"page_hinkley": {"name": "slow", "alpha": 1.0}}],
        "detectors_by_model": {"fraud-*": {"slow": {"threshold": 200}}, "w*": {"adwin": {"delta": "1e-6"}}},
    }
    fraud, others = specs.monitors_spec(read(tmp_path, asked)).detectors_by_model
    assert fraud.models == "fraud-*"
    assert fraud.detectors == (AdwinDriftSpec(), PageHinkleySpec("slow", threshold=200.0, alpha=1.0))
    assert others.detectors == (AdwinDriftSpec(delta=1e-6), PageHinkleySpec("slow", alpha=1.0))


def test_a_warning_of_some_models_goes_with_the_alarm_that_all_models_have(tmp_path: Path) -> None:
    detectors = [{"hddm_a": {"delta": 0.01, "warning_delta": 0.1}}]

    def own(given: dict[str, float]) -> tuple[DetectorSpec, ...]:
        asked = {"detectors": detectors, "detectors_by_model": {"m*": {"hddm_a": given}}}
        return read_detectors_of_models(tmp_path, asked)

    assert own({"delta": 0.05}) == (HddmASpec(delta=0.05, warning_delta=0.1),)
    assert own({"warning_delta": 0.02}) == (HddmASpec(delta=0.01, warning_delta=0.02),)
    expected = r"hddm_a: warning_delta: confidence of a warning must be larger than delta \({}\), got {}"
    for given, found in (({"warning_delta": 0.01}, (0.01, 0.01)), ({"delta": 0.2}, (0.2, 0.1))):
        with pytest.raises(SettingsError, match=expected.format(*found)):
            own(given)


def read_detectors_of_models(folder: Path, monitors: dict[str, Any]) -> tuple[DetectorSpec, ...]:
    (found,) = specs.monitors_spec(read(folder, monitors)).detectors_by_model
    return found.detectors


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"page_hinkly": {}}, "fraud-*: no detector is named 'page_hinkly'; did you mean 'page_hinkley'?"),
        (
            {"page_hinkley": {"treshold": 3}},
            "fraud-*: page_hinkley: no parameter is named 'treshold'; did you mean 'threshold'?",
        ),
        (
            {"page_hinkley": {"threshold": -1}},
            "fraud-*: page_hinkley: threshold: threshold (λ) must be in (0, inf), got -1.0",
        ),
        (
            {"page_hinkley": {"name": "other"}},
            "page_hinkley: no parameter is named 'name'; there are",
        ),
        (
            {"page_hinkley": {"min_outcomes": "many"}},
            "fraud-*: page_hinkley: min_outcomes: ",
        ),
    ],
)
def test_a_fault_in_detectors_of_some_models_is_named_with_its_path(
    tmp_path: Path, given: dict[str, Any], shown: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, {"detectors_by_model": {"fraud-*": given}})
    assert str(caught.value).startswith("monitors.detectors_by_model in ")
    assert shown in str(caught.value)
