"""Rules about labels and their join with predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from streamwatch.admin.doctor.facts import MODEL, Facts, Finding, Weight, id_mismatch
from streamwatch.core.join.caveats import CAUSE, CHANGE
from streamwatch.core.join.caveats import MANY as MANY_REPEATED
from streamwatch.core.metrics.series import detail_at
from streamwatch.core.predictions.label_delays import BINS
from streamwatch.inspection.classes import matched
from streamwatch.inspection.guessing import duration_text

LEAST: Final = 0.01
"""Share of late labels from which it is reported."""


def horizon_short(facts: Facts) -> Iterator[Finding]:
    """Labels arrive after their predictions have expired."""
    late = facts.now.total("labels_late_total")
    joined = facts.now.total("labels_joined_total")
    if not late or late < LEAST * (late + joined):
        return
    horizon = facts.configured.horizon_ms if facts.configured else None
    yield Finding(
        Weight.INCOMPLETE,
        "join.horizon",
        f"is too short for {late / (late + joined):.1%} of the labels: {late:,.0f} arrived after expiry",
        "labels take longer than predictions wait"
        + (f" ({duration_text(horizon)})" if horizon else "")
        + "; late labels differ from early ones, so the accuracy is that of quick labels",
        "join: {horizon: …}: try twice as long; streamwatch inspect shows the delays",
    )


def delays_moved(facts: Facts) -> Iterator[Finding]:
    """Label delays of a model have changed."""
    for model, details in sorted(facts.details.items()):
        moved = detail_at(details, "late_labels", "delays_moved")
        if typical := ", ".join(each for kind in ("hits", "errors") for each in _typical(moved, kind)):
            yield Finding(
                Weight.WORTH_KNOWING,
                f"{MODEL}{model}",
                f"has labels with other delays than before, typically {typical}",
                "what labels the predictions works otherwise; early verdicts and the corrected accuracy "
                "assume that delays stay, and may be wrong until predictions with the new delays are a "
                "horizon old",
                "wait with decisions on an early verdict until it is confirmed; ask who delivers the labels",
            )


def _typical(moved: object, kind: str) -> Iterator[str]:
    before, after = (detail_at(moved, kind, f"{name}_seconds") for name in ("before", "after"))
    if isinstance(before, int | float) and isinstance(after, int | float):
        yield f"{duration_text(1000 * after)} for {kind} (before: {duration_text(1000 * before)})"


LEAST_LATE: Final = 0.05
"""Share of labels that arrive in the last fifth of the horizon, from which it is reported."""
UNLABELLED: Final = 0.01
"""Share of predictions without a label from which it is reported: else the horizon cuts nothing off."""


def labels_cut_off(facts: Facts) -> Iterator[Finding]:
    """Labels were still arriving when predictions expired."""
    for model, details in sorted(facts.details.items()):
        shares = detail_at(details, "label_delays", "labelled")
        if isinstance(shares, list) and len(shares) == BINS:
            before, whole = (float(share) for share in shares[-2:] if isinstance(share, int | float))
            last = whole - before
            if last >= LEAST_LATE * whole > 0.0 and whole <= 1.0 - UNLABELLED:
                yield _finding_cut_off(model, whole, last)


def _finding_cut_off(model: str, whole: float, last: float) -> Finding:
    return Finding(
        Weight.INCOMPLETE,
        f"{MODEL}{model}",
        f"has labels for {whole:.1%} of its predictions when these expire, {last / whole:.1%} of them from "
        "the last fifth of join.horizon",
        "labels were still arriving when the predictions expired; late labels differ from early ones, so "
        "the accuracy is that of quick labels",
        "join: {horizon: …}: try twice as long; label_delays on the model's page shows when labels arrive",
    )


MANY: Final = 0.1
"""Share of orphaned labels from which it is reported."""


def labels_orphaned(facts: Facts) -> Iterator[Finding]:
    """Many labels of a topic match no prediction."""
    if not facts.now.total("labels_joined_total"):
        return
    by_topic = facts.now.by("topic_labels_total", "topic")
    for topic, accepted in by_topic.items():
        orphaned = facts.now.total("topic_label_results_total", topic=topic, result="orphaned")
        yield from _found(f"labels of {topic}", orphaned, accepted)
    if not by_topic:
        accepted = facts.now.total("labels_accepted_total")
        yield from _found("labels", facts.now.total("labels_orphaned_total"), accepted)


def _found(labels: str, orphaned: float, accepted: float) -> Iterator[Finding]:
    if accepted and orphaned > MANY * accepted:
        yield Finding(
            Weight.INCOMPLETE,
            labels,
            f"match no prediction in {orphaned / accepted:.1%} of cases ({orphaned:,.0f} of {accepted:,.0f})",
            "some predictions are on a topic that is not read, or some ids are written differently",
            "topics.predictions: list every topic that scores these ids; streamwatch inspect shows ids "
            "without a match",
        )


BEFORE: Final = 0.05
"""Share of labels older than their prediction from which it is reported."""
FEWEST: Final = 20
"""Least number of such labels."""


def labels_before_predictions(facts: Facts) -> Iterator[Finding]:
    """Labels are older than their predictions, by the times in the records."""
    before = facts.now.total("labels_negative_delay_total")
    joined = facts.now.total("labels_joined_total")
    if before < FEWEST or before < BEFORE * joined:
        return
    yield Finding(
        Weight.WORTH_KNOWING,
        "labels",
        f"are older than their prediction in {before / joined:.1%} of cases ({before:,.0f} of "
        f"{joined:,.0f}), and these delays count as 0",
        "the clocks of what writes predictions and labels differ, or timestamps of one side are in another "
        "unit or in local time: label delays, and what is judged by them, are wrong",
        "correct the clock, or mapping: timestamp and timestamp_unit (text without an offset is in UTC); "
        "message.timestamp.type=LogAppendTime gives both topics the clock of the brokers",
    )


NEARLY_ALWAYS: Final = 0.97
"""Accuracy of repeating the previous label from which it is reported."""
FAR: Final = 0.3
"""Least difference of that accuracy to the share of the most frequent class."""
ENOUGH: Final = 200
"""Least number of outcomes of a model."""


def labels_sorted(facts: Facts) -> Iterator[Finding]:
    """Labels arrive in runs of one class, as from a sorted dump."""
    if facts.configured is not None and facts.configured.order == "prediction_time":
        return
    for model in facts.models:
        if (baselines := facts.baselines(model, ENOUGH)) is None:
            continue
        persistent, majority = baselines
        if persistent < NEARLY_ALWAYS or persistent < majority + FAR:
            continue
        yield Finding(
            Weight.WORTH_KNOWING,
            f"{MODEL}{model}",
            f"has labels that repeat the previous one in {persistent:.1%} of its outcomes, although the most "
            f"frequent class has only {majority:.1%}",
            "labels come sorted by class, as from a nightly dump, and not in the order of events",
            "join: {order: prediction_time, reorder_window: …}, with a window longer than a dump takes",
        )


MANY_LABELS: Final = 20
"""Number of accepted labels below which missing labels are the likely cause."""


def nothing_joins(facts: Facts) -> Iterator[Finding]:
    """No label matches a prediction of a model."""
    for model, wrong in facts.now.by("nothing_joins", "model").items():
        if not wrong:
            continue
        predictions = facts.now.by("model_predictions_total", "model").get(model, 0.0)
        labels = facts.now.value("labels_accepted_total") or 0.0
        observed = f"has no label for any of {predictions:,.0f} predictions"
        if labels < MANY_LABELS:
            cause, change = (
                f"only {labels:,.0f} labels were read at all",
                "check whether the label topics receive records, and whether kafka.start_from skips them",
            )
        elif (seen := id_mismatch(facts, model)) is not None:
            cause, change = (
                seen,
                "let one side write ids as the other does, or map another field: topics … mapping: id",
            )
        else:
            cause = f"{labels:,.0f} labels were read, so the two sides probably write ids differently"
            change = (
                "compare ids with streamwatch inspect, or this command with -c; then topics … mapping: id"
            )
        yield Finding(Weight.NOTHING_TRUE, f"{MODEL}{model}", observed, cause, change)


def classes_disjoint(facts: Facts) -> Iterator[Finding]:
    """Predicted and true classes of a model are disjoint."""
    for model, details in sorted(facts.details.items()):
        predicted = detail_at(details, "classes_disjoint", "predicted_class")
        true = detail_at(details, "classes_disjoint", "true")
        if isinstance(predicted, list) and isinstance(true, list):
            yield _finding(model, [str(name) for name in predicted], [str(name) for name in true])


def _finding(model: str, predicted: Sequence[str], true: Sequence[str]) -> Finding:
    ours, theirs = ", ".join(map(repr, predicted)), ", ".join(map(repr, true))
    observed = f"is right in no outcome: it predicts {ours}, but labels say {theirs}"
    aliases = matched(predicted, true)
    if aliases:
        shown = ", ".join(f"{written!r}: {meant!r}" for written, meant in aliases.items())
        change = f"in the mapping of the label topic: classes: {{{shown}}}"
    else:
        change = "in the mapping of one of the topics: classes: {name in records: name that is meant}"
    if _are_scores(predicted):
        return Finding(
            Weight.NOTHING_TRUE,
            f"{MODEL}{model}",
            observed,
            "the mapped field holds a score instead of a class",
            "map the field with the class that the score led to: topics.predictions … mapping: prediction",
        )
    return Finding(
        Weight.NOTHING_TRUE, f"{MODEL}{model}", observed, "the two sides write classes differently", change
    )


def _are_scores(names: Sequence[str]) -> bool:
    return all(name.replace(".", "", 1).isdigit() and "." in name for name in names)


def predictions_repeated(facts: Facts) -> Iterator[Finding]:
    """Models predict ids repeatedly: two models share a name, or ids are used again."""
    revised = facts.configured is not None and facts.configured.conflicts != "first"
    found = [each for topic in facts.topics.values() for each in topic.repeats.many(revised=revised)]
    for each in found:
        yield Finding(
            Weight.NOTHING_TRUE, f"{MODEL}{each.model}", f"{each.summary} (newest records)", CAUSE, CHANGE
        )
    duplicates = facts.now.total("predictions_duplicate_total")
    conflicts = 0.0 if revised else facts.now.total("predictions_conflict_total")
    repeated = duplicates + conflicts
    count = facts.now.total("predictions_accepted_total") + repeated
    if not found and repeated > MANY_REPEATED * count:
        yield Finding(
            Weight.NOTHING_TRUE if conflicts > MANY_REPEATED * count else Weight.WORTH_KNOWING,
            "predictions",
            f"repeat an id and a model in {repeated / count:.1%} of cases ({repeated:,.0f} of {count:,.0f}; "
            f"{conflicts:,.0f} with another class): one of each counts",
            CAUSE,
            CHANGE,
        )


def labels_missing(facts: Facts) -> Iterator[Finding]:
    """Sampled labels are missing, or more or less frequent than `label_probability` says."""
    for model, details in sorted(facts.details.items()):
        found = details.get("sampled_labels")
        asked, arrived = (
            detail_at(found, "settled", "labels_asked"),
            detail_at(found, "settled", "labels_arrived"),
        )
        if not isinstance(asked, float | int) or not isinstance(arrived, int) or not asked:
            continue
        if detail_at(found, "labels_missing") is True:
            yield Finding(
                Weight.INCOMPLETE,
                f"labels of {model}",
                f"are missing: of {asked:,.0f} that were asked for, {arrived:,} have come",
                "labels are lost on their way, or their ids are written differently; estimates hold only if "
                "they are lost regardless of the outcome",
                "look where reviews go: labels_orphaned_total and records_invalid_total count those that "
                "arrive and match nothing",
            )
        if detail_at(found, "probabilities_differ") is True:
            yield Finding(
                Weight.NOTHING_TRUE,
                f"label_probability of {model}",
                "is not how often labels are asked for, so that accuracy and leads from sampled labels are "
                "wrong",
                "the sampling changed and the field did not, or labels come from elsewhere too",
                "write the probability that is used for each prediction; mapping: label_requested shows "
                "labels that were asked for from others",
            )
