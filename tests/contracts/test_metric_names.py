"""Names, labels and units of every family, as Prometheus' conventions and ours have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from streamwatch.core.metrics.series import Family
from tests.contracts.families import every_family

FAMILIES = every_family()
BOUNDED_LABELS = {
    "baseline", "bound", "cause", "challenger", "champion", "class", "deployment", "detector",
    "drift_weighted", "event", "fold", "forgetting", "label_topic",
    "implementation", "limit", "model", "opponent", "part", "partition", "reason", "receiver",
    "result", "role", "segment", "severity", "side", "stage", "tier", "topic", "value", "version",
}  # fmt: skip
CORE_SET = {
    "accuracy_ratio", "adwin_window_outcomes", "alarms_total", "baseline_accuracy_ratio",
    "build_info", "caught_up", "clock_timestamp_seconds", "consumer_lag_records",
    "detector_statistic", "detector_threshold",
    "drift_weighted_accuracy_ratio", "effective_sample_size", "errors_total", "kafka_up", "kappa",
    "kappa_majority", "kappa_persistent", "kappa_plus", "label_delay_seconds",
    "labels_accepted_total", "last_alarm_timestamp_seconds", "last_label_timestamp_seconds", "lead", "mcc",
    "oldest_pending_timestamp_seconds", "outcomes_total", "pending_predictions",
    "predictions_accepted_total", "recall_ratio", "state_durable", "verdict",
    "verdict_since_timestamp_seconds", "watermark_timestamp_seconds",
}  # fmt: skip


def test_no_two_families_share_a_name_in_either_format() -> None:
    """OpenMetrics knows a counter by its name without `_total`; a histogram's series have suffixes."""
    names = Counter(name for family in FAMILIES for name in _names(family))
    assert [name for name, times in names.items() if times > 1] == []


def _names(family: Family) -> set[str]:
    suffixes = ("_bucket", "_count", "_sum") if family.kind == "histogram" else ()
    return {family.name, family.name.removesuffix("_total"), *(family.name + suffix for suffix in suffixes)}


def test_the_core_set_is_there() -> None:
    assert {family.name for family in FAMILIES} >= CORE_SET


def violating(is_kept: Callable[[Family], bool]) -> list[str]:
    """Names of the families that do not keep a rule."""
    return [family.name for family in FAMILIES if not is_kept(family)]


def test_total_is_on_counters_and_only_there() -> None:
    assert violating(lambda family: family.name.endswith("_total") is (family.kind == "counter")) == []


def test_units_are_base_units() -> None:
    other = "_(ms|millis|milliseconds|minutes|hours|days|kb|mb|percent|pct)(_|$)"
    moments = ("_timestamp_seconds", "timestamps_corrected_total")
    assert violating(lambda family: re.fullmatch("[a-z][a-z0-9_]*", family.name) is not None) == []
    assert violating(lambda family: re.search(other, family.name) is None) == []
    assert violating(lambda family: "timestamp" not in family.name or family.name.endswith(moments)) == []


def test_labels_are_alphabetical_and_of_bounded_kinds() -> None:
    assert violating(lambda family: list(family.labels) == sorted(set(family.labels))) == []
    assert violating(lambda family: set(family.labels) <= BOUNDED_LABELS) == []


def test_help_is_one_sentence_or_two() -> None:
    assert violating(lambda family: 10 < len(family.help) < 250) == []
    assert violating(lambda family: family.help[0].isupper() or family.help[0].isdigit()) == []
    assert violating(lambda family: "\n" not in family.help) == []
