"""ADWIN and Page-Hinkley beside MOA 24.07 and river 0.26.1, step by step, on one stream of 40,000 losses.

ADWIN is compared by window width (so every cut), estimate and change flag; Page-Hinkley by statistic and
alarm, where river's definition is ours: the paper's form (river's sum forgets, its minimum does not), equal
to the clipped form at α = 1.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import AdwinSpec, MonitorsSpec, PageHinkleySpec

HERE = Path(__file__).parent

WINDOWS = tuple(
    AdwinSpec(delta, least, clock, "ignored")
    for delta, least, clock in ((0.002, 7, 32), (0.05, 7, 1), (0.002, 5, 32))
)
PAGE_HINKLEY = tuple(
    replace(spec, dependence="ignored")
    for spec in (
        PageHinkleySpec("both paper", threshold=50.0, form="paper", direction="both"),
        PageHinkleySpec("2.5", 0.001, 2.5, 1.0),
        PageHinkleySpec("2.5 paper", 0.001, 2.5, 1.0, form="paper"),
        PageHinkleySpec("50", 0.005, 50.0, 1.0),
    )
)


def golden(name):
    with gzip.open(HERE / f"{name}.csv.gz", "rt") as lines:
        return np.genfromtxt(lines, delimiter=",", names=True, deletechars="")


@cache
def traced():
    loss = golden("D1_bernoulli_input")["x"].astype(np.int32)
    spec = MonitorsSpec(WINDOWS, PAGE_HINKLEY, (), max_models=1, max_classes=2, opponents=())
    table = ModelTable(spec)
    rows = np.full(len(loss), table.add_model(), np.int32)
    return table.trace(rows, np.zeros_like(loss), loss)


@pytest.mark.parametrize(
    ("window", "engine", "width", "estimate", "change"),
    [
        pytest.param(0, "D1_bernoulli_moa_adwin", "width", "est_d002_c32", "change", id="MOA"),
        pytest.param(
            1, "D1_bernoulli_moa_adwin", "width_c1", "est_d05_c1", "change_c1", id="MOA at every outcome"
        ),
        pytest.param(
            2, "D1_bernoulli_river", "adwinhelper_width", "adwinhelper_est", "adwinhelper_drift", id="river"
        ),
    ],
)
def test_adwin_has_the_width_estimate_and_cuts_of_the_engine(window, engine, width, estimate, change) -> None:
    theirs, ours = golden(engine), traced().totals[window]
    np.testing.assert_array_equal(ours.n, theirs[width])
    np.testing.assert_allclose(1.0 - ours.hits / ours.n, theirs[estimate], rtol=1e-8, atol=1e-12)
    cut = np.diff(ours.n, prepend=0.0) < 1.0
    np.testing.assert_array_equal(cut, theirs[change] == 1.0)
    assert cut.sum() >= 13


@pytest.mark.parametrize(
    ("detector", "column"),
    [(1, "ph_up_d.001_l2.5_a1"), (2, "ph_up_d.001_l2.5_a1"), (3, "ph_up_d.005_l50_a1")],
)
def test_page_hinkley_without_forgetting_is_rivers(detector, column) -> None:
    theirs, ours = golden("D1_bernoulli_river"), traced()
    np.testing.assert_allclose(ours.statistic[detector], theirs[f"{column}_stat_up"], rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(ours.alarmed[detector], theirs[f"{column}_drift"] == 1.0)


def test_page_hinkley_in_the_papers_form_forgets_as_rivers_does() -> None:
    theirs, ours = golden("D1_bernoulli_river"), traced()
    np.testing.assert_array_equal(ours.alarmed[0], theirs["ph_def_both_drift"] == 1.0)
    assert (ours.statistic[0] >= theirs["ph_def_both_stat_up"] - 1e-7).all()
