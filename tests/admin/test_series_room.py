"""What the check says of series: no less than a report has, and what goes is what a scrape leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamwatch.admin.series_count import (
    OF_NO_MODEL,
    check_series,
    least_series,
    model_series,
    too_few_series,
)
from streamwatch.core.metrics.series_budget import lines_of
from streamwatch.core.metrics.table import StandardSeries, is_needed
from streamwatch.core.specs import ComparisonSpec, MonitorsSpec
from tests.core.estimators.estimated import drifting, folded
from tests.layouts import DEFAULT

FIVE_HUNDRED = MonitorsSpec(max_models=500, max_classes=20, all_series=True)


@pytest.mark.slow
def test_no_model_has_more_series_than_are_counted() -> None:
    spec = replace(DEFAULT, max_models=1, max_classes=2)
    monitors, _ = folded(drifting(1, 3_000, models=("m",), classes=("x", "y")), spec)
    each = model_series(spec)
    lines = {"needed": 0, "class": 0, "forgetting": 0, "other": 0}
    for family in monitors.families():
        for sample in family.samples:
            labels = dict(zip(family.labels, sample[0], strict=True))
            size = lines_of(replace(family, samples=[sample]))
            if "class" in labels:
                lines["class"] += size
            elif is_needed(family.name, labels, "fading:0.999"):
                lines["needed"] += size
            elif labels.get("forgetting", "fading:0.999") == "fading:0.999":
                lines["other"] += size
            else:
                lines["forgetting"] += size
    assert each.needed - 25 <= lines["needed"] <= each.needed  # the join adds some
    assert each.forgetting - 10 <= lines["forgetting"] <= each.forgetting
    assert each.other - 35 <= lines["other"] <= each.other
    assert lines["class"] == each.of_class * 2


def test_the_default_limit_has_room_for_five_hundred_models_of_twenty_classes_with_all_their_series() -> None:
    result = check_series(FIVE_HUNDRED)
    assert result.good
    total = OF_NO_MODEL + 500 * model_series(FIVE_HUNDRED).total
    assert total <= FIVE_HUNDRED.max_series
    assert result.what == f"series: at most {total:,}; monitors.max_series is 200,000"


def test_of_the_standard_series_a_scrape_shows_no_more_than_are_counted() -> None:
    spec = replace(DEFAULT, max_models=1, max_classes=2)
    monitors, _ = folded(drifting(1, 3_000, models=("m",), classes=("x", "y")), spec)
    shown = StandardSeries([each.name for each in spec.forgetting]).chosen(monitors.families())
    lines = sum(lines_of(family) for family in shown)
    each = model_series(spec, every=False)
    assert each.total - 60 <= lines <= each.total  # the join adds some
    assert each.total < 0.6 * model_series(spec).total
    assert each.forgetting == 0


def test_the_default_limit_has_room_for_a_thousand_models_with_the_standard_series() -> None:
    thousand = replace(FIVE_HUNDRED, max_models=1_000)
    assert "if every limit is reached at once" in check_series(thousand).what
    standard = check_series(replace(thousand, all_series=False))
    total = OF_NO_MODEL + 1_000 * model_series(thousand, every=False).total
    assert standard.what == f"series: at most {total:,}; monitors.max_series is 200,000"


def test_the_default_limits_have_room_for_what_rules_and_dashboards_read() -> None:
    assert least_series(MonitorsSpec()) <= MonitorsSpec().max_series
    assert too_few_series(MonitorsSpec()) is None


def test_a_limit_too_small_for_rules_and_dashboards_is_refused_with_the_least_that_is_not() -> None:
    spec = MonitorsSpec(max_models=100, max_series=5_000)
    least = least_series(spec)
    result = check_series(spec)
    assert not result.good
    assert result.what.startswith(f"monitors.max_series: expected at least {least:,} for 100 models")
    assert result.what.endswith("got 5,000: raise it, or lower monitors.max_models")
    assert check_series(replace(spec, max_series=least)).good


def test_series_of_sampled_labels_are_counted_where_labels_are_sampled() -> None:
    plain, sampled = model_series(FIVE_HUNDRED), model_series(FIVE_HUNDRED, sampled=True)
    assert plain.needed == sampled.needed
    assert sampled.other - plain.other == 10 + 2 * 3  # leads are over two opponents, with bounds


def test_what_would_go_is_stated_in_the_order_in_which_it_does() -> None:
    each = model_series(MonitorsSpec())
    tight = MonitorsSpec(max_series=200_000, all_series=True)
    result = check_series(tight)
    assert result.good
    assert "if every limit is reached at once" in result.what
    left = (190_000 - OF_NO_MODEL) // 1_000 - each.needed - each.other
    stated = [detail for detail in result.details if detail.startswith("then each model keeps")]
    assert stated == [
        f"then each model keeps {left} of {each.forgetting} series under further forgettings",
        "then each model keeps 0 of 1,000 classes",
    ]
    many = check_series(replace(tight, max_models=50))
    kept = (190_000 - OF_NO_MODEL) // 50 - each.needed - each.other - each.forgetting
    assert f"then each model keeps {kept // 4:,} of 1,000 classes" in many.details


def test_segments_folds_comparisons_and_no_per_class_series_count() -> None:
    plain = model_series(FIVE_HUNDRED)
    assert model_series(FIVE_HUNDRED, folds=10).segment == 10 * (len(FIVE_HUNDRED.forgetting) + 1)
    assert model_series(replace(FIVE_HUNDRED, per_class="")).of_class == 0
    assert model_series(FIVE_HUNDRED, segments=2).segment == plain.segment == 0
    compared = replace(FIVE_HUNDRED, comparisons=(ComparisonSpec("a", ("b",)),), max_comparisons=10)
    more = check_series(compared).what.partition("most ")[2].partition(";")[0]
    less = check_series(FIVE_HUNDRED).what.partition("most ")[2].partition(";")[0]
    assert int(more.replace(",", "")) - int(less.replace(",", "")) >= 10 * 40
