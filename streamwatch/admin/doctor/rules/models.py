"""Rules about models: silent ones, detectors, early hints, limits, segments, rare predictions and classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final, cast

from streamwatch.admin.doctor.facts import MODEL, Facts, Finding, Weight
from streamwatch.core.alerting.rules import AlarmRule
from streamwatch.core.metrics.series import detail_at
from streamwatch.core.records.events import OTHER
from streamwatch.inspection.guessing import duration_text
from streamwatch.inspection.streams import are_misread


def detectors_silent(facts: Facts) -> Iterator[Finding]:
    """Alarms are not announced yet, because a model has too few outcomes."""
    least = facts.configured.min_outcomes if facts.configured else AlarmRule().min_outcomes
    for model in facts.models:
        outcomes = facts.now.value("outcomes_total", model=model) or 0.0
        if 0 < outcomes < least:
            yield Finding(
                Weight.WORTH_KNOWING,
                f"{MODEL}{model}",
                f"has {outcomes:,.0f} outcomes: its alarms are not announced before {least:,}",
                "few labels have arrived so far",
                f"wait, or alerts: {{min_outcomes: {max(1, round(outcomes))}}}",
            )


def early_hint_stands(facts: Facts) -> Iterator[Finding]:
    """Predictions of a model have changed, and their labels have not arrived yet."""
    for model, active in facts.now.by("early_hint", "model").items():
        if not active:
            continue
        yield Finding(
            Weight.WORTH_KNOWING,
            f"{MODEL}{model}",
            f"has an early hint: {_changed(facts.details.get(model, {}))}; the labels are not in yet",
            "the world, the input of the model or the model itself has changed; without labels, it is "
            "unknown which, and whether the model errs more",
            "examine the input of the model since then; its accuracy will be known once labels are in "
            "(if day and night differ: monitors: {early_hints: {reach: …}} of several days of predictions)",
        )


def _changed(details: Mapping[str, object]) -> str:
    """Describe how predictions changed, as far as the details of the hint show it."""
    hint = detail_at(details, "early_hints", "hint")
    more, name = detail_at(hint, "more"), detail_at(hint, "class")
    if not isinstance(more, bool) or not isinstance(name, str | None):
        return "its predictions differ from earlier ones"
    if name is None:
        return f"scores of predicted classes are {'higher' if more else 'lower'} than before"
    which = "classes beyond its first eight are" if name == OTHER else f"{name!r} is"
    return f"{which} predicted {'more' if more else 'less'} often than before"


RARE: Final = 0.9
"""Share of the most frequent class from which it is reported, as accuracy then says little."""
ENOUGH: Final = 100
"""Least number of outcomes of a model."""


def persistent_wins(facts: Facts) -> Iterator[Finding]:
    """The previous label is right more often than the model, and classes are imbalanced."""
    for model in facts.models:
        forgetting, baselines = facts.forgetting(model), facts.baselines(model, ENOUGH)
        if forgetting is None or baselines is None:
            continue
        accuracy = facts.now.value("accuracy_ratio", model=model, forgetting=forgetting)
        persistent, majority = baselines
        if accuracy is None or persistent <= accuracy or majority < RARE:
            continue
        if _utility(facts, model) != "accuracy":
            continue
        yield Finding(
            Weight.WORTH_KNOWING,
            f"{MODEL}{model}",
            f"is right in {accuracy:.1%}, the previous label in {persistent:.1%}, "
            f"but classes are {majority * 100:.0f} : {(1 - majority) * 100:.0f}",
            "with a rare class, a model that never predicts it is right most of the time: accuracy does not "
            "measure what the model is for",
            f"monitors: {{utility_by_model: {{{model}: balanced}}}}, or costs of each mistake",
        )


def _utility(facts: Facts, model: str) -> str:
    """Return the utility by which a model is judged; accuracy if settings are not known."""
    if facts.configured is None:
        return "accuracy"
    of_patterns = facts.configured.utilities.items()
    return next((utility for models, utility in of_patterns if fnmatchcase(model, models)), "accuracy")


CAUSES: Final[Mapping[str, str]] = {
    "models": "more models predict than the limit allows, or the mapped model is an id of each run",
    "classes": "more classes appear than the limit allows, or the mapped class is a score or free text",
    "comparisons": "more pairs of models are to be compared than the limit allows",
}
"""Likely cause by the label `limit` of the metric; the setting is `monitors.max_<limit>`."""
SEGMENTS: Final = "segments"
"""Label `limit` of combinations of segments' values, which no setting limits."""


def limits_reached(facts: Facts) -> Iterator[Finding]:
    """A limit of models, classes, comparisons, values of segments or series is reached."""
    for limit, count in facts.now.by("records_over_limit_total", "limit").items():
        if count and limit == SEGMENTS:
            yield Finding(
                Weight.INCOMPLETE,
                "segments",
                f"of {count:,.0f} predictions are not distinguished",
                "too many combinations of their values are waiting, or a mapped field is an id",
                "topics.predictions … mapping: {segments: …}: map fields with fewer values",
            )
        elif count:
            yield Finding(
                Weight.NOTHING_TRUE,
                f"monitors.max_{limit}",
                f"is reached: {count:,.0f} records are beyond it",
                CAUSES.get(limit, "more appears than the limit allows"),
                f"monitors: {{max_{limit}: …}}; check the names first: streamwatch inspect lists them",
            )
    if dropped := facts.now.total("series_dropped"):
        yield Finding(
            Weight.INCOMPLETE,
            "monitors.max_series",
            f"is reached: {dropped:,.0f} series are not in /metrics ({_parts(facts)})",
            "models × estimators and classes make more series than the limit allows",
            "monitors: {max_series: …} (streamwatch check computes it), or fewer forgetting or classes; the "
            "API has all numbers, and what rules and dashboards read is never left out",
        )


def _parts(facts: Facts) -> str:
    dropped = facts.now.by("series_dropped", "part")
    return ", ".join(f"{count:,.0f} {part}" for part, count in dropped.items() if count)


LEAST: Final = 0.05
"""Share of a segment's outcomes under `__other__` from which it is reported."""


def segments_full(facts: Facts) -> Iterator[Finding]:
    """A segment has more values than can have estimates of their own."""
    for (name, labels), count in sorted(facts.now.samples.items(), key=lambda sample: -sample[1]):
        of = dict(labels)
        if name == "segment_outcomes_left_out_total" and count:
            yield Finding(
                Weight.INCOMPLETE,
                f"segment {of['segment']} of model {of['model']}",
                f"lacks {count:,.0f} outcomes, because there was no room for their values",
                "all models together have more values than monitors.segments.max_total",
                "map fewer segments or fields with fewer values, or monitors: {segments: {max_total: …}}",
            )
        elif name == "segment_outcomes_total" and of["value"] == OTHER:
            counted = facts.now.total(name, model=of["model"], segment=of["segment"])
            if count >= LEAST * counted > 0:
                yield Finding(
                    Weight.WORTH_KNOWING,
                    f"segment {of['segment']} of model {of['model']}",
                    f"has {count / counted:.1%} of its outcomes in {OTHER}",
                    "it has more values than can have estimates of their own, or the mapped field is an id",
                    "monitors: {segments: {max_values: …}}, or a field with fewer values",
                )


FAR_SECONDS: Final = 90 * 86_400.0
"""Time until a lead of 5 points gives a verdict, from which it is reported."""


def verdicts_far(facts: Facts) -> Iterator[Finding]:
    """A model predicts so rarely that a verdict on it takes months."""
    for model in facts.models:
        cohorts = facts.details.get(model, {}).get("cohorts")
        if not isinstance(cohorts, Mapping):
            continue
        opponents = cast("Mapping[str, Mapping[str, float]]", cohorts.get("opponents", {}))
        after = [one.get("five_points_shown_after_seconds", 0.0) for one in opponents.values()]
        if after and min(after) >= FAR_SECONDS:
            yield Finding(
                Weight.WORTH_KNOWING,
                f"{MODEL}{model}",
                f"has so few predictions that a lead of 5 points would be a verdict after about "
                f"{duration_text(1_000 * min(after))}",
                "a verdict that holds however often one looks needs evidence, which comes by predictions",
                "label more, judge models of one kind under one name, or read the interval of the lead "
                "instead of the verdict",
            )


def verdicts_left_out(facts: Facts) -> Iterator[Finding]:
    """A model has more outcomes than its cohorts count."""
    for model in facts.models:
        left_out = detail_at(facts.details.get(model, {}), "cohorts", "left_out")
        if isinstance(left_out, int) and left_out > 0:
            yield Finding(
                Weight.INCOMPLETE,
                f"{MODEL}{model}",
                f"has more than 4.2 billion outcomes in a 16th of the horizon, or predictions in a cohort: "
                f"{left_out:,} of them tell nothing to verdicts by cohorts",
                "its predictions within join.horizon are more than the counts of cohorts hold",
                "a shorter join.horizon, if labels take less, or models by part of the traffic",
            )


# Rules about silence: models whose labels or predictions have stopped, or seem to, by a misread time.


LEAST_SECONDS: Final = 3_600.0
"""Least silence that is reported, as by the shipped alerts (`LabelsStopped`, `PredictionsStopped`)."""
TIMES: Final = 2.0
"""Least silence of labels, as a multiple of the time in which 99 % of a model's labels arrive."""
FEW: Final = 100
"""Least number of labels from which that time is taken."""


def _slow_delay(facts: Facts, model: str) -> float | None:
    """Upper bound of the time in which 99 % of a model's labels arrive, in seconds.

    None with fewer than `FEW` labels; infinite if it is beyond the last bound of the histogram.
    """
    buckets = facts.now.by("label_delay_seconds_bucket", "le", model=model)
    below = sorted((float(bound), count) for bound, count in buckets.items())
    if not below or below[-1][1] < FEW:
        return None
    return next(bound for bound, count in below if count >= 0.99 * below[-1][1])


def labels_stopped(facts: Facts) -> Iterator[Finding]:
    """A model still predicts, but its labels have stopped.

    Nothing is found while no prediction waits, or while their usual delay is unknown, as with few labels, or
    beyond the longest bound of the histogram.
    """
    for model in facts.models:
        label = facts.now.value("last_label_timestamp_seconds", model=model)
        prediction = facts.now.value("last_prediction_timestamp_seconds", model=model)
        slow = _slow_delay(facts, model)
        if label is None or prediction is None or slow is None or not math.isfinite(slow):
            continue
        silent = prediction - label
        waiting = facts.now.value("pending_predictions", model=model) or 0.0
        if silent <= max(LEAST_SECONDS, TIMES * slow) or not waiting or not _caught_up(facts):
            continue
        took, since = duration_text(round(1_000 * slow)), duration_text(round(1_000 * silent))
        yield Finding(
            Weight.NOTHING_TRUE,
            f"{MODEL}{model}",
            f"has had no label for {since} and goes on predicting ({waiting:,.0f} predictions wait); 99 % of "
            f"its labels used to come within {took}",
            "what writes labels has stopped, or writes them to another topic; every estimate stands still",
            "start what writes labels; streamwatch inspect shows what arrives on the label topics",
        )


def predictions_stopped(facts: Facts) -> Iterator[Finding]:
    """A model has stopped predicting, in record time."""
    clock = facts.now.value("clock_timestamp_seconds")
    if clock is None or not _caught_up(facts):
        return
    for model, last in facts.now.by("last_prediction_timestamp_seconds", "model").items():
        if clock - last > LEAST_SECONDS and not are_misread([round(1_000 * last)]):
            yield Finding(
                Weight.WORTH_KNOWING,
                f"{MODEL}{model}",
                f"has not predicted for {duration_text(round(1_000 * (clock - last)))}",
                "it is no longer asked, runs at times only, or writes to a topic that is not read",
                "if it should predict, look at what calls it; its estimates are of the time before",
            )


_DECADES: Final = 20 * 365 * 86_400.0
"""Delay in seconds that no label has: twice the longest horizon."""


def times_misread(facts: Facts) -> Iterator[Finding]:
    """Timestamps in seconds are read as milliseconds, so that a model predicts in January 1970."""
    for model, last in facts.now.by("last_prediction_timestamp_seconds", "model").items():
        if are_misread([round(1_000 * last)]):
            yield Finding(
                Weight.NOTHING_TRUE,
                f"{MODEL}{model}",
                f"predicts in {datetime.fromtimestamp(last, UTC):%B %Y}, by the timestamps of its records",
                "they are seconds, and are read as milliseconds: delays and deadlines are a thousandth of "
                "what they are",
                "mapping: timestamp_unit: s (or the unit that is written), on both sides",
            )
        elif late := _decades_late(facts, model):
            count = facts.now.value("label_delay_seconds_count", model=model) or 0.0
            yield Finding(
                Weight.NOTHING_TRUE,
                f"{MODEL}{model}",
                f"has labels that come decades after their prediction ({late:,.0f} of {count:,.0f}), by the "
                "timestamps of its records",
                "some producers of predictions write seconds and others milliseconds, and all are read as "
                "milliseconds",
                "let all write one unit, or map each kind by a mapping of its own (when, timestamp_unit)",
            )


def _decades_late(facts: Facts, model: str) -> float:
    """Count label delays beyond the last bound of a model's histogram; 0 unless their mean is decades."""
    counts = sorted(
        (float(bound), count)
        for bound, count in facts.now.by("label_delay_seconds_bucket", "le", model=model).items()
    )
    if len(counts) < 2:
        return 0.0
    below = most = 0.0
    for bound, count in counts[:-1]:
        most += bound * (count - below)
        below = count
    beyond = counts[-1][1] - below
    total = facts.now.value("label_delay_seconds_sum", model=model) or 0.0
    return beyond if beyond and total - most > _DECADES * beyond else 0.0


def _caught_up(facts: Facts) -> bool:
    """Return whether the daemon has caught up: before that, missing records may simply be unread."""
    return facts.now.value("caught_up") == 1.0
