"""What is written of several models, and what is read of their recordings."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import yaml
from rich.console import Console

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import DAY_MS, PageHinkleySpec
from streamwatch.history.replay.replay import ReplaySpec, replay
from streamwatch.history.tuning.advice import TunedModel, Wanted, best_of, document, print_tuned, tuned_models
from streamwatch.history.tuning.history import Histories, History
from streamwatch.history.tuning.promise import TUNED, Advice, Delay
from streamwatch.settings import load


def advice(kind, strictness, delay):
    tuned = TUNED[kind]
    spec = tuned.spec(strictness)
    value = getattr(spec, tuned.parameter)
    return Advice(kind, spec, tuned.parameter, value, 5e-6, 2e-5, 10**6, (Delay(0.05, delay, 1.0),))


def model(name, *advices):
    return TunedModel(name, 10_000, 0.1, 50_000.0, advices, ())


def test_of_each_detector_the_strictest_counts_and_of_all_the_quickest() -> None:
    loose, strict = advice("page_hinkley", 40.0, 500.0), advice("page_hinkley", 60.0, 700.0)
    quick, slow = advice("ewma", 3.0, 300.0), advice("ewma", 4.0, 650.0)
    best = best_of([model("a", loose, slow), model("b", strict, quick)])
    assert best is not None
    assert best.advice == slow
    assert best.models == ("a", "b")


def test_a_lower_confidence_is_stricter() -> None:
    loose, strict = advice("hddm_a", 5.0, 500.0), advice("hddm_a", 9.0, 700.0)
    best = best_of([model("a", loose), model("b", strict)])
    assert best is not None
    assert best.advice == strict


def test_a_detector_that_suits_one_model_only_is_left_out() -> None:
    both = advice("page_hinkley", 40.0, 500.0)
    best = best_of([model("a", both, advice("ewma", 3.0, 100.0)), model("b", both)])
    assert best is not None
    assert best.advice.kind == "page_hinkley"


def test_nothing_is_best_of_nothing() -> None:
    assert best_of([model("a")]) is None


@pytest.mark.parametrize("kind", TUNED)
def test_what_is_written_is_read_as_settings(kind, tmp_path) -> None:
    found = advice(kind, TUNED[kind].least * 1.5, 100.0)
    best = best_of([model("a", found)])
    assert best is not None
    text = document(best, "30d")
    assert "# At most one false alarm of a model in 30d (a):" in text
    head = {
        "kafka": {"bootstrap_servers": "a:1"},
        "topics": {"predictions": ["p"], "labels": ["l"]},
        **yaml.safe_load(text),
    }
    file = tmp_path / "streamwatch.yaml"
    file.write_text(yaml.safe_dump(head))
    assert load(file, environ={}).monitors.detectors == (found.spec,)


def test_an_interval_is_reported_and_no_expectation() -> None:
    found = advice("ewma", 3.0, 100.0)
    reported = "50,000 to 200,000 outcomes (98% interval)"
    for each, stated, shown in (
        (found, f"one in {reported}.", "50,000-200,000"),
        (replace(found, low=0.0), "one in 50,000 or more outcomes; none was seen in 1,000,000.", "50,000-∞"),
    ):
        best = best_of([model("a", each)])
        assert best is not None
        assert document(best, "30d").splitlines()[1] == f"# {stated}"
        console = Console(width=200, record=True, file=io.StringIO())
        print_tuned([model("a", each)], console)
        text = console.export_text()
        assert shown in text
        assert "expected" not in text


def test_names_of_models_and_reasons_are_shown_as_they_are() -> None:
    found = replace(model("m[/b]", advice("ewma", 3.0, 100.0)), refusals=("[red] is no reason",))
    console = Console(width=200, record=True, file=io.StringIO())
    print_tuned([found], console)
    text = console.export_text()
    assert "m[/b]: " in text
    assert "no promise: [red] is no reason" in text


def test_a_warning_stays_looser_than_its_alarm() -> None:
    spec = TUNED["hddm_a"].spec(12.0)
    assert isinstance(spec, HddmASpec)
    assert spec.delta < spec.warning_delta < 1.0


@pytest.mark.parametrize("kind", TUNED)
def test_every_detector_that_is_tried_has_allowed_parameters(kind) -> None:
    tuned = TUNED[kind]
    for strictness in tuned.grid(tuned.least, tuned.most, 12):
        assert catalogue.problems(tuned.spec(float(strictness))) == []


def test_traffic_is_that_of_the_recording_and_only_then() -> None:
    losses = np.zeros(10, np.int8)
    times = np.arange(10) * DAY_MS // 2
    assert History(losses, times).outcomes_per_day == pytest.approx(10 / 4.5)
    assert History(losses, np.zeros(10, np.int64)).outcomes_per_day is None
    (refused,) = tuned_models({"m": History(losses, times * 0)}, Wanted(["ewma"], DAY_MS, None, 1))
    assert refused.refusals == ("the recording has no times to count the traffic by; give it with --traffic",)
    later = {"m": History(losses, times).between(100 * DAY_MS, None)}
    for traffic in (None, 100.0):
        (refused,) = tuned_models(later, Wanted(["ewma"], DAY_MS, traffic, 1))
        assert refused.refusals == ("no outcome lies between --since and --until",)
    (short,) = tuned_models({"m": History(losses, times)}, Wanted(["ewma", "cusum"], DAY_MS, None, 1))
    assert short.refusals == ("the history has 10 outcomes; at least 1,000 are needed",)


def test_the_lines_of_a_recording_without_times_are_no_traffic(tmp_path) -> None:
    rows = "".join(f"{i},m,a,a\n" for i in range(2_000))
    (tmp_path / "outcomes.csv").write_text(f"id,model,prediction,label\n{rows}")
    histories = Histories()
    replay(ReplaySpec([tmp_path / "outcomes.csv"], seen=histories.add))
    (refused,) = tuned_models(histories.of_models(), Wanted(["ewma"], DAY_MS, None, 1))
    assert refused.outcomes == 2_000
    assert refused.refusals == ("the recording has no times to count the traffic by; give it with --traffic",)


def test_a_part_of_the_history_begins_at_one_time_and_ends_before_another() -> None:
    history = History(np.arange(5, dtype=np.int8), np.arange(5) * 10)
    assert history.between(10, 30).losses.tolist() == [1, 2]
    assert history.between(None, None).losses.tolist() == [0, 1, 2, 3, 4]


def test_outcomes_are_kept_by_model_in_their_order() -> None:
    histories, at = Histories(), 1_700_000_000_000
    histories.add([Outcome("m", "a", "a", at, 0), Outcome("other", "a", "b", at + 1, 0)])
    histories.add([Outcome("m", "a", "b", at + 2, 0)])
    found = histories.of_models()
    assert found["m"].losses.tolist() == [0, 1]
    assert found["m"].event_ms.tolist() == [at, at + 2]
    assert found["other"].losses.tolist() == [1]


def test_every_tuned_parameter_makes_its_detector_stricter() -> None:
    for tuned in TUNED.values():
        base = replace(tuned.base, name="x")
        assert tuned.spec(tuned.least * 2, "x") != base
    assert TUNED["page_hinkley"].spec(70.0) == PageHinkleySpec(threshold=70.0)
