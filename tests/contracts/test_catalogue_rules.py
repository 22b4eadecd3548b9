"""Every line of the catalogue keeps the contracts; a line added to it is held to them at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from docs.reference.generate import metrics_page
from streamwatch.cli import app
from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.entries import Entry, Parameter
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.catalogue import Bound, Measure
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.settings.estimators import OneOf
from tests.commands import CliRunner
from tests.contracts.catalogue_rules import SPEC, faults, tables
from tests.core.estimators.measures import plain_measures


@dataclass(frozen=True, slots=True)
class CountingSpec:
    """A toy detector: alarms at every so many errors."""

    name: str = "counting"
    every: int = 100


ERROR = Measure(
    "error_ratio",
    "Share of outcomes the model got wrong",
    "E = 1 - p",
    "Gama, Sebastião, Rodrigues 2009",
    "O(1) a report",
    lambda totals: 1.0 - measures.accuracy(totals),
)
COUNTING = Entry(
    "counting",
    CountingSpec,  # pyright: ignore[reportArgumentType]
    "alarms at every so many errors",
    "errors mod every = 0",
    "a toy",
    "O(1) an outcome; 1 number a model",
    (Parameter("every", "errors per alarm", 1, 1_000, whole=True, help="More alarms less."),),
)


def test_every_line_keeps_every_contract() -> None:
    assert faults() == []


def test_no_table_is_empty() -> None:
    assert all(tables().values())


def test_a_measure_is_one_function_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MEASURES", (*catalogue.MEASURES, ERROR))
    assert faults() == ["measures error_ratio: no plain twin to be compared with"]
    monkeypatch.setitem(plain_measures.MEASURES, "error_ratio", lambda o: 1.0 - plain_measures.accuracy(o))
    assert faults() == []
    monitors = EstimatorSet(SPEC)
    trace = monitors.trace([Outcome("m", "a", "b", 0, 0), Outcome("m", "a", "a", 0, 0)])
    assert [row[trace.columns.index("error_ratio:landmark")] for row in trace.rows] == [1.0, 0.5]
    (family,) = (f for f in monitors.families() if f.name == "error_ratio")
    assert dict(family.samples)["landmark", "m"] == 0.5
    assert family.help.startswith(ERROR.help)


def test_the_page_of_metrics_is_out_of_date_as_soon_as_a_measure_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "MEASURES", (*catalogue.MEASURES, ERROR))
    assert "| `error_ratio` | gauge |" in metrics_page()


def test_a_bound_is_one_function_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = Bound("sure", "no doubt at all", "p", "nobody", "O(1) a report", lambda t, _: measures.accuracy(t))
    monkeypatch.setattr(catalogue, "BOUNDS", (*catalogue.BOUNDS, sure))
    assert faults() == ["bounds sure: no plain twin to be compared with"]


def test_a_detector_is_asked_for_its_kernel_its_settings_and_all_it_must_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "DETECTORS", (*catalogue.DETECTORS, COUNTING))
    assert faults() == [
        "detectors counting: not a key of the settings",
        "detectors counting: the kernel does not have it",
    ]
    careless = replace(COUNTING, name="Counting", source="", cost=" ", parameters=())
    monkeypatch.setattr(catalogue, "DETECTORS", (*catalogue.DETECTORS[:-1], careless))
    assert {
        "detectors Counting: the name is not a label value of its own",
        "detectors Counting: no source",
        "detectors Counting: no cost",
        "Counting: every is a parameter or a key of its settings only, not both",
    } <= set(faults())


def test_the_settings_of_a_detector_follow_from_its_line() -> None:
    one_of = OneOf((*catalogue.DETECTORS, COUNTING))
    read = TypeAdapter(Annotated[object, one_of]).validate_python
    assert read("counting") == CountingSpec()
    assert read({"counting": {"every": 7, "name": "often"}}) == CountingSpec("often", 7)
    assert one_of.shown(CountingSpec()) == {"counting": {"name": "counting", "every": 100}}
    with pytest.raises(
        ValidationError, match=r"errors per alarm must be a whole number in \[1, 1000\], got 0"
    ):
        read({"counting": {"every": 0}})
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        read({"counting": {"evry": 1}})


@pytest.mark.parametrize("entry", list(catalogue.entries()), ids=lambda e: e.spec.__name__)
def test_the_kernel_takes_every_value_that_the_catalogue_allows(entry: Entry) -> None:
    sections = {"forgetting": catalogue.MECHANISMS, "detectors": catalogue.DETECTORS}
    section = next((name for name, lines in sections.items() if entry in lines), "drift_weighted")
    for parameter in entry.parameters:
        ends = [e for k, e in parameter.bounds.items() if not k.startswith("exclusive")]
        for value in parameter.choices or (int(e) if parameter.whole else e for e in ends):
            spec = entry.spec(**{parameter.name: value})
            assert catalogue.problems(spec) == []
            layout_of(replace(SPEC, **{section: (spec,)}))


def test_a_default_out_of_range_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = replace(
        COUNTING, parameters=(Parameter("every", "errors per alarm", 1, 10, whole=True, help="Few."),)
    )
    monkeypatch.setattr(catalogue, "DETECTORS", (*catalogue.DETECTORS, narrow))
    expected = "counting: by default, errors per alarm must be a whole number in [1, 10], got 100"
    assert expected in faults()


def test_a_spec_of_a_line_that_was_added_is_checked_against_its_ranges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "DETECTORS", (*catalogue.DETECTORS, COUNTING))
    toy = CountingSpec(every=0)
    assert catalogue.problems(toy) == [  # pyright: ignore[reportArgumentType]
        ("every", "errors per alarm must be a whole number in [1, 1000], got 0")
    ]


@pytest.mark.parametrize("kind", list(tables()))
def test_the_command_prints_every_line_with_all_it_says_also_when_piped(kind: str) -> None:
    printed = CliRunner().invoke(app, ["catalogue", kind])
    assert printed.exit_code == 0
    assert "\x1b" not in printed.output
    for line in tables()[kind]:
        assert f"\n  {line.name}\n" in printed.output
        for stated in (line.help, line.formula, line.source, line.cost):
            assert stated in printed.output, f"{line.name} is printed on one line, not wrapped"


def test_the_command_prints_ranges_and_defaults_as_json_too() -> None:
    document = json.loads(CliRunner().invoke(app, ["catalogue", "mechanisms", "--json"]).output)
    assert list(document) == ["mechanisms"]
    (alpha,) = document["mechanisms"][1]["parameters"]
    assert alpha == {
        "name": "alpha",
        "meaning": "fading factor",
        "help": "Factor by which the weight of an outcome shrinks with each later one.",
        "expected": "in [0.001, 1)",
        "default": 0.999,
    }
