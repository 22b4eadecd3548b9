"""Each kind of detector alone, its functions run by Python, against its slow twin after every outcome.

Without the rest of the kernel a stream takes a moment, so that more parameters, and streams of one kind of
loss, are tried here than in a table.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import nan
from typing import Any

import numpy as np
import pytest

from streamwatch.core.estimators.detectors import KINDS, DetectorKind
from streamwatch.core.estimators.detectors.adwin_drift import ADWIN_DRIFT
from streamwatch.core.estimators.detectors.cusum import CusumSpec
from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.detectors.ewma import EWMA, EwmaSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.detectors.hddm_w import HddmWSpec
from streamwatch.core.estimators.detectors.kind import ALARM
from streamwatch.core.estimators.detectors.kswin import KswinSpec
from streamwatch.core.estimators.detectors.page_hinkley import PAGE_HINKLEY
from streamwatch.core.estimators.detectors.stepd import StepdSpec
from streamwatch.core.estimators.forgetting import adwin
from streamwatch.core.specs import AdwinDriftSpec, AdwinSpec, PageHinkleySpec
from tests.core.estimators.kernel.twin_detectors import TWINS
from tests.core.estimators.kernel.twin_drifts import TwinDdm, TwinPageHinkley
from tests.mutants.interpreted import call

DIRECTIONS = ("up", "down", "both")
LIMITS = ("bernstein", "paper")
SPECS: dict[type[Any], list[Any]] = {
    PageHinkleySpec: [
        PageHinkleySpec("p", tolerance, threshold, alpha, min_outcomes, dependence, form, direction, given)
        for (tolerance, threshold, alpha, min_outcomes), dependence, form, direction, given in (
            ((0.005, 4.0, 0.99, 1), "followed", "clipped", "up", "loss"),
            ((0.0, 3.0, 1.0, 30), "ignored", "clipped", "both", "loss"),
            ((0.02, 2.5, 0.95, 7), "ignored", "paper", "both", "loss"),
            ((0.02, 3.0, 0.98, 10), "followed", "paper", "down", "loss"),
            ((0.001, 0.6, 1.0, 20), "ignored", "clipped", "both", "error_rate"),
            ((0.0, 0.3, 0.9, 1), "followed", "paper", "up", "error_rate"),
        )
    ],
    DdmSpec: [
        DdmSpec("d", min_outcomes, warning_level, alarm_level)
        for min_outcomes, warning_level, alarm_level in ((30, 2.0, 3.0), (1, 1.0, 2.0), (10, 1.5, 1.5))
    ],
    CusumSpec: [
        CusumSpec(
            "c", expected=expected, allowance=allowance, threshold=3.07, min_outcomes=least, direction=way
        )
        for (expected, allowance, least), way in product([(0.0, 0.05, 1), (0.29, 0.0, 12)], DIRECTIONS)
    ],
    HddmASpec: [
        HddmASpec("h", delta=delta, warning_delta=warning, direction=way)
        for (delta, warning), way in product([(0.001, 0.005), (0.05, 0.3)], DIRECTIONS)
    ],
    HddmWSpec: [
        HddmWSpec("w", weight=weight, delta=delta, warning_delta=warning, direction=way)
        for (weight, delta, warning), way in product([(0.05, 0.01, 0.05), (0.1, 0.1, 0.4)], DIRECTIONS)
    ],
    EwmaSpec: [
        EwmaSpec("e", weight=weight, alarm_level=level, min_outcomes=least, limits=limits, direction=way)
        for (weight, level, least), limits, way in product(
            [(0.1, 0.9, 1), (0.05, 2.5, 20)], LIMITS, DIRECTIONS
        )
    ],
    StepdSpec: [
        StepdSpec("s", recent=recent, significance=level, warning_significance=warning, direction=way)
        for (recent, level, warning), way in product([(10, 0.02, 0.1), (32, 0.05, 0.3)], DIRECTIONS)
    ],
    KswinSpec: [
        KswinSpec("k", recent=recent, older=older, significance=level, direction=way)
        for (recent, older, level), way in product(
            [(10, 25, 0.05), (30, 32, 0.02), (20, 10, 0.1)], DIRECTIONS
        )
    ],
}
TWIN_OF = {PageHinkleySpec: TwinPageHinkley, DdmSpec: TwinDdm, **TWINS}


def losses(seed: int) -> list[int]:
    """Sixty losses each at a low, a high, a low and a middle error."""
    rng = np.random.default_rng(seed)
    return (rng.random(240) < np.repeat([0.06, 0.85, 0.1, 0.5], 60)).astype(int).tolist()


STREAMS = {
    "errors that come and go": losses(1),
    "misses alone": [1] * 45,
    "hits, then misses": [0] * 50 + [1] * 50,
    "misses, then hits": [1] * 50 + [0] * 60,
    "in turns": [0, 1] * 30,
}


class Alone:
    """Detectors of one kind at one model, of which nothing else is there."""

    def __init__(self, kind: DetectorKind, specs: list[Any]) -> None:
        self.kind = kind
        number = len(specs)
        self.model = np.zeros(1, [("outcomes", "i8"), (kind.name, kind.state, (number,))])[0]
        self.parameters = np.zeros(1, [(kind.name, kind.parameters, (number,))])[0]
        for k, spec in enumerate(specs):
            self.parameters[kind.name][k] = kind.row(spec, k, lambda _: 0)
        self.alarms = np.zeros(number, ALARM)
        self.shown = np.full((2, number, 1), np.nan)
        """Statistic and threshold."""
        self.counts, self.warned = np.zeros((number, 1), np.int64), np.zeros((number, 1), np.bool_)

    def show(self) -> None:
        """Fill `shown`, `counts` and `warned`."""
        self.shown[:] = nan
        call(self.kind.show, self.model, self.parameters, *self.shown, self.counts, self.warned, np.int64(0))

    def take(self, loss: int) -> list[tuple[float, ...]]:
        """Pass on a loss; returns (detector, ordinal, outcome, statistic, threshold, before, after, n)."""
        self.model["outcomes"] += 1
        count = call(
            self.kind.observe, self.model, self.parameters, bool(loss), 7, 3, self.alarms, np.int64(0)
        )
        self.show()
        new = self.alarms[:count]
        assert set(new["position"].tolist()) <= {7}
        assert set(new["row"].tolist()) <= {3}
        names = ("detector", "ordinal", "outcome", "statistic", "threshold", "before", "after", "n_eff")
        return new[list(names)].tolist()


def test_every_kind_without_a_window_is_tried() -> None:
    assert SPECS.keys() == {kind.spec for kind in KINDS} - {AdwinDriftSpec}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_after_every_loss_it_says_what_its_twin_says(spec: type[Any], name: str) -> None:
    (kind,) = (each for each in KINDS if each.spec is spec)
    alone, twins = Alone(kind, SPECS[spec]), [TWIN_OF[spec](each) for each in SPECS[spec]]
    ordinals = [0] * len(twins)
    alone.show()
    assert_same_values(alone, twins)
    for t, loss in enumerate(STREAMS[name], 1):
        expected: list[tuple[float, ...]] = []
        for k, twin in enumerate(twins):
            drift = twin.update(loss)
            if drift is not None:
                ordinals[k] += 1
                expected.append((k, ordinals[k], t, twin.statistic, twin.threshold, *drift))
        found = alone.take(loss)
        assert [each[:3] for each in found] == [each[:3] for each in expected], t
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert_same_values(alone, twins)
        assert alone.counts[:, 0].tolist() == ordinals


def assert_same_values(alone: Alone, twins: list[Any]) -> None:
    values = [[twin.statistic for twin in twins], [twin.threshold for twin in twins]]
    np.testing.assert_allclose(alone.shown[:, :, 0], values, rtol=1e-9, atol=1e-11)
    assert alone.warned[:, 0].tolist() == [twin.warned for twin in twins]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_on_one_of_the_streams_each_of_them_alarms(spec: type[Any]) -> None:
    for each in SPECS[spec]:
        twins = [(TWIN_OF[spec](each), stream) for stream in STREAMS.values()]
        assert any(twin.update(loss) is not None for twin, stream in twins for loss in stream), each


@pytest.mark.parametrize(
    ("stream", "before", "after"),
    [("001111010101", 6 / 11, 1.0), ("110000100110", 1 / 2, 3 / 8), ("110010000110", 1 / 2, 3 / 8)],
)
def test_a_rise_and_a_fall_of_exactly_the_same_size_are_told_as_a_rise(
    stream: str, before: float, after: float
) -> None:
    """By the twin, too, in which both are as large; means are those around the last minimum of the rise."""
    spec = PageHinkleySpec("p", 0.0, 0.5, 0.5, len(stream), "ignored", "paper", "both", "loss")
    alone, twin = Alone(PAGE_HINKLEY, [spec]), TwinPageHinkley(replace(spec, min_outcomes=len(stream) + 1))
    found = [alone.take(int(loss)) for loss in stream]
    for loss in stream:
        twin.update(int(loss))
    up, down = (twin.value[side] - twin.minimum[side][0] for side in ("up", "down"))
    assert up == down
    assert found[:-1] == [[]] * (len(stream) - 1)
    assert found[-1] == [pytest.approx((0, 1, 12, up, 0.5, before, after, 12))]


def test_a_model_that_is_always_wrong_has_no_fall_below_its_error() -> None:
    """The expected faded loss is the faded loss, but for how the two are rounded; the paper's limit is 0."""
    specs = [each for each in SPECS[EwmaSpec] if each.limits == "paper" and each.direction != "up"]
    alone = Alone(EWMA, specs)
    assert len(specs) == 4
    assert [alone.take(1) for _ in range(120)] == [[]] * 120
    assert not alone.warned.any()


def test_adwin_alarms_at_new_drifts_of_its_window_in_its_direction_and_at_no_others() -> None:
    """The windows are made up. Where the means before and after a drift are equal, it has no direction."""
    rng, deltas = np.random.default_rng(1), (0.05, 0.2)
    specs = [AdwinDriftSpec(delta=delta, direction=way) for delta, way in product(deltas, DIRECTIONS)]
    window_of = [deltas.index(spec.delta) for spec in specs]
    indices = {AdwinSpec(delta, 5, 32, "followed"): k for k, delta in enumerate(deltas)}
    state = [("outcomes", "i8"), ("adwin_drift", ADWIN_DRIFT.state, (6,)), ("windows", adwin.WINDOW, (2,))]
    given = [("adwin_drift", ADWIN_DRIFT.parameters, (6,)), ("windows", adwin.PARAMETERS, (2,))]
    model, parameters = np.zeros(1, state)[0], np.zeros(1, given)[0]
    for k, spec in enumerate(specs):
        parameters["adwin_drift"][k] = ADWIN_DRIFT.row(spec, k, indices.__getitem__)
    alarms, counts = np.zeros(8, ALARM), np.zeros(6, np.int64)
    for outcome in range(1, 80):
        model["outcomes"], expected = outcome, []
        for window in model["windows"]:
            window["before"], window["after"] = rng.choice([0.125, 0.25, 0.5], 2)
            window["statistic"], window["threshold"] = rng.random(2)
            window["kept"] = rng.integers(20, 900)
            window["last_drift"] = rng.choice([outcome, outcome - 1, 0])
        for k, spec in enumerate(specs):
            window = model["windows"][window_of[k]]
            rise = window["after"] - window["before"]
            wanted = {"up": rise > 0, "down": rise < 0, "both": rise != 0}[spec.direction]
            if wanted and window["last_drift"] == outcome:
                counts[k] += 1
                values = (
                    float(window[name]) for name in ("statistic", "threshold", "before", "after", "kept")
                )
                expected.append((4, 2, k, counts[k], outcome, *values))
        count = call(ADWIN_DRIFT.observe, model, parameters, True, 4, 2, alarms, np.int64(1))
        names = ("statistic", "threshold", "before", "after", "n_eff")
        found = alarms[1:count][["position", "row", "detector", "ordinal", "outcome", *names]]
        assert found.tolist() == expected
        shown, ordinals = np.zeros((2, 6, 1)), np.zeros((6, 1), np.int64)
        warned = np.zeros((6, 1), np.bool_)
        call(ADWIN_DRIFT.show, model, parameters, *shown, ordinals, warned, np.int64(0))
        assert shown[0, :, 0].tolist() == model["windows"]["statistic"][window_of].tolist()
        assert shown[1, :, 0].tolist() == model["windows"]["threshold"][window_of].tolist()
        assert ordinals[:, 0].tolist() == counts.tolist()
        assert not warned.any()
    assert all(counts > 3)
