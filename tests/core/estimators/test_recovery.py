"""Recovery after drifts: against its definition at every outcome, and what begins and ends a drift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.recovery import read_histograms, read_recoveries
from streamwatch.core.metrics import DEPTH_BOUNDS, LENGTH_BOUNDS
from streamwatch.core.specs import AdwinDriftSpec, FadingSpec, PageHinkleySpec
from streamwatch.papers.recovery import recovery
from tests.core.estimators.drifting import FADED, QUIET, missed, phases, traced, with_alpha
from tests.core.estimators.kernel.streams import drifting, one_row, table_of
from tests.core.estimators.plain_recovery import PlainRecovery
from tests.layouts import DEFAULT, EVERYTHING, TINY


@pytest.mark.parametrize(
    ("spec", "stream"),
    [
        pytest.param(
            with_alpha(EVERYTHING, 0.98, verdict_outcomes=700), drifting(2_500, 9, 3, every=250), id="rises"
        ),
        pytest.param(
            with_alpha(DEFAULT, 0.995, verdict_outcomes=3_000),
            missed(phases((2_000, 0.05), (500, 0.6), (2_000, 0.05), (2_500, 0.7), (1_000, 0.8))),
            id="a drift that ends as not recovered",
        ),
        pytest.param(
            with_alpha(DEFAULT, 0.7, verdict_outcomes=1), missed(phases((3_000, 0.2), (900, 0.5))), id="short"
        ),
        pytest.param(
            with_alpha(QUIET, 0.995), missed(phases((4_000, 0.4), (900, 0.9), (2_000, 0.2))), id="a verdict"
        ),
    ],
)
def test_drifts_are_measured_as_defined_after_every_outcome(spec, stream) -> None:
    true_class, predicted_class = stream
    trace = traced(spec, true_class, predicted_class)
    alpha = next(f.alpha for f in spec.forgetting if isinstance(f, FadingSpec))
    plain = PlainRecovery(true_class != predicted_class, alpha, spec.verdict_outcomes)
    expected = list(plain.run(trace.alarms))
    for name in ("since", "recovered", "not_recovered"):
        assert trace.recovery[name].tolist() == [getattr(each, name) for each in expected], name
    for name in ("depth", "outcomes"):
        np.testing.assert_allclose(trace.recovery[name], [getattr(each, name) for each in expected], 1e-9)
    assert (trace.recovery["since"] > 0).any()


def test_a_drift_that_ended_is_what_the_lab_measures_from_its_start() -> None:
    loss = phases((5_000, 0.1), (1_500, 0.4), (6_000, 0.1))
    trace = traced(DEFAULT, *missed(loss))
    totals = trace.totals[1]
    (end,) = np.flatnonzero(np.diff(trace.recovery["recovered"])) + 1
    start = int(trace.recovery["since"][end - 1])
    assert 4_000 <= start <= 5_100
    found = recovery(1.0 - totals.hits / totals.n, totals.n_eff, start, int(end) + 1)
    last = trace.recovery[-1]
    assert (last["depth"], last["outcomes"]) == (found.depth, found.outcomes), "bitwise"
    assert 0.15 < found.depth < 0.35
    assert found.outcomes > 1_500


def test_an_alarm_long_before_the_faded_error_has_risen_is_measured_once_it_has() -> None:
    loss = phases((5_000, 0.05), (400, 0.9), (6_000, 0.05))
    trace = traced(DEFAULT, *missed(loss))
    first = int(np.flatnonzero(trace.recovery["since"])[0])
    at_alarm = trace.recovery[first]
    assert at_alarm["peak"] < at_alarm["limit"]
    assert trace.recovery[-1]["recovered"] == 1
    assert trace.recovery[-1]["depth"] > 0.2


def test_an_error_that_never_leaves_its_bound_has_recovered_after_0_outcomes() -> None:
    loss = phases((5_000, 0.1), (45, 1.0), (3_000, 0.1))
    trace = traced(with_alpha(DEFAULT, 0.9995), *missed(loss))
    last = trace.recovery[-1]
    assert (last["recovered"], last["outcomes"]) == (1, 0)
    assert 0 < last["depth"] < 0.03


def test_a_fall_of_the_error_begins_no_drift() -> None:
    spec = replace(DEFAULT, detectors=(PageHinkleySpec(direction="down"), AdwinDriftSpec(direction="both")))
    trace = traced(spec, *missed(phases((3_000, 0.45), (1_500, 0.05))))
    assert {a.detector for a in trace.alarms if a.after < a.before} == {0, 1}
    assert not trace.recovery["since"].any()


def test_a_model_that_was_worse_from_its_first_outcome_on_has_no_level_to_return_to() -> None:
    loss = phases((3_000, 0.9))
    true_class = np.zeros(3_000, np.int32)
    trace = traced(DEFAULT, true_class, loss)
    assert any(a.since and a.after < 0 for a in trace.alarms)
    assert not trace.recovery["since"].any()


def test_a_verdict_since_before_the_oldest_sample_begins_no_drift() -> None:
    """Of a memory of 100 outcomes, 512 are kept; the level before the change is none of them."""
    trace = traced(with_alpha(QUIET, 0.99), *missed(phases((2_000, 0.4), (4_000, 0.58))))
    (verdict,) = (a for a in trace.alarms if a.since and a.after < 0)
    assert verdict.outcome - verdict.since > 520
    assert trace.recovery["since"][verdict.outcome - 1] == 0


def test_without_a_fading_factor_nothing_is_followed() -> None:
    table = ModelTable(TINY)
    row = table.add_model()
    loss = phases((100, 0.5))
    table.fold(one_row(100, row), np.zeros(100, np.int32), loss)
    assert table.recovery_documents(np.array([row])) is None
    assert len(table.recoveries(np.array([row]))) == 0


@pytest.mark.slow
def test_histograms_count_every_drift_that_ended() -> None:
    spec = with_alpha(DEFAULT, 0.98, verdict_outcomes=500)
    loss = phases(*[(3_000, 0.05), (400, 0.7)] * 5, (3_000, 0.05), (3_000, 0.9))
    table = table_of(spec)
    table.fold(one_row(len(loss)), *missed(loss))
    records = table.recoveries(FADED)
    read = read_recoveries(records)
    depths, lengths = (each[0] for each in read_histograms(records))
    assert read.recovered[0] >= 4
    assert read.not_recovered[0] >= 1
    assert depths.counts[-1] == read.recovered[0] + read.not_recovered[0]
    assert lengths.counts[-1] == read.recovered[0]
    assert len(depths.counts) == len(DEPTH_BOUNDS) + 1
    assert len(lengths.counts) == len(LENGTH_BOUNDS) + 1
    plain = PlainRecovery(loss, 0.98, 500)
    list(plain.run(table_of(spec).trace(one_row(len(loss)), *missed(loss)).alarms))
    ends = np.array(plain.ended)
    assert depths.counts[:-1] == tuple((ends[:, 0] <= bound).sum() for bound in DEPTH_BOUNDS)
    assert lengths.counts[:-1] == tuple((ends[:, 1] <= bound).sum() for bound in LENGTH_BOUNDS)
    assert depths.total == pytest.approx(ends[:, 0].sum())
    assert lengths.total == np.nansum(ends[:, 1])
