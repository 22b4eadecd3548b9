"""Comparisons over folds and the diagram of ranks: printed examples, SciPy, and every group by definition."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamwatch.core.estimators.folds import LEAST_FOLDS, MOST_COMPARED, compared, groups, rank_diagram
from tests.core.estimators.folds.test_significance import A, B

SVG = "{http://www.w3.org/2000/svg}"


def by_fold(values):
    return {str(fold): value for fold, value in enumerate(values)}


def test_the_printed_example_of_two_classifiers_over_ten_folds() -> None:
    """Bifet et al. 2015, Table 1; W⁺ by its own ranks (the paper prints 53)."""
    found = compared({"a": by_fold(A), "b": by_fold(B)})
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"], pair["folds"]) == ("a", "b", 10)
    assert pair["difference"] == pytest.approx(np.mean(A) - np.mean(B))
    assert (pair["sign"]["wins"], pair["sign"]["losses"]) == (8, 2)
    assert pair["sign"]["p"] == pytest.approx(0.109, abs=5e-4)
    assert (pair["wilcoxon"]["positive"], pair["wilcoxon"]["negative"]) == (52.0, 3.0)
    assert pair["wilcoxon"]["p"] == pytest.approx(0.00977, abs=5e-6)
    assert found["models"]["a"] == {
        "folds": 10,
        "mean": pytest.approx(np.mean(A)),
        "deviation": pytest.approx(np.std(A, ddof=1)),
    }
    assert (found["ranks"], found["left_out"]) == (None, 0)


def test_three_models_are_ranked_over_the_folds_that_all_of_them_have() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((3, 9)) + np.array([[0.0], [0.3], [0.6]])
    accuracies = {name: by_fold(row) for name, row in zip("abc", values, strict=True)}
    del accuracies["b"]["4"]
    ranks = compared(accuracies)["ranks"]
    kept = np.delete(values, 4, axis=1)
    expected = stats.friedmanchisquare(*kept)
    assert ranks["folds"] == 8
    assert (ranks["statistic"], ranks["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    means = stats.rankdata(-kept, axis=0).mean(axis=1)
    assert ranks["mean_ranks"] == pytest.approx(dict(zip("abc", means, strict=True)))
    assert ranks["diagram"] == rank_diagram(ranks["mean_ranks"], ranks["critical_difference"])


def test_models_without_folds_in_common_are_not_compared() -> None:
    assert LEAST_FOLDS == 2
    found = compared({"a": {"0": 0.5, "1": 0.6}, "b": {"1": 0.5, "2": 0.7}, "c": {}})
    assert found["pairs"] == []
    assert found["ranks"] is None
    assert found["models"]["c"] == {"folds": 0}
    assert compared({}) == {"models": {}, "pairs": [], "ranks": None, "left_out": 0}


def test_what_ties_everywhere_has_no_p() -> None:
    (pair,) = compared({"a": by_fold([0.5, 0.6]), "b": by_fold([0.5, 0.6])})["pairs"]
    assert pair["sign"] == {"wins": 0, "losses": 0}
    assert pair["wilcoxon"] == {"positive": 0.0, "negative": 0.0}


def test_no_more_models_are_compared_than_can_be_read() -> None:
    rng = np.random.default_rng(1)
    found = compared({f"m{k:02}": by_fold(rng.random(5)) for k in range(MOST_COMPARED + 3)})
    assert found["left_out"] == 3
    assert len(found["pairs"]) == MOST_COMPARED * (MOST_COMPARED - 1) // 2
    assert len(found["models"]) == MOST_COMPARED + 3


@given(st.lists(st.integers(2, 16), min_size=2, max_size=8), st.integers(1, 12))
def test_bars_join_exactly_those_that_are_not_distinguished(halves, difference) -> None:
    ranks = sorted(half / 2 for half in halves)
    found = groups(ranks, difference / 2)
    for first, last in found:
        assert ranks[last] - ranks[first] < difference / 2
        for other in found:
            assert (first, last) == other or not (other[0] <= first and last <= other[1])
    for i, j in combinations(range(len(ranks)), 2):
        joined = any(first <= i and j <= last for first, last in found)
        assert joined == (ranks[j] - ranks[i] < difference / 2)


def test_the_diagram_shows_every_name_as_text_and_is_well_formed() -> None:
    ranks = {'<script>alert("1")</script>': 1.5, "a & b": 2.0, "x" * 100: 2.5, "d": 4.0}
    drawn = ET.fromstring(rank_diagram(ranks, 0.9))  # noqa: S314 - our own
    assert drawn.tag == f"{SVG}svg"
    shown = [each.text for each in drawn.iter(f"{SVG}text")]
    for name, rank in ranks.items():
        assert any(
            f"{rank:.2f}" in text and text.replace(f"{rank:.2f}", "").strip()[:9] == name[:9]
            for text in shown
        )
    assert {each.tag for each in drawn.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "path", "text", "g")
    }
    bars = [each for each in drawn.iter(f"{SVG}path") if each.get("stroke-width") == "4"]
    assert len(bars) == len(groups(sorted(ranks.values()), 0.9)) == 2
    with pytest.raises(ValueError, match="needs 2 or more names, got 1"):
        rank_diagram({"a": 1.0}, 1.0)
