"""Texts of notifications, the same for every receiver."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from streamwatch.core.alerting.alternation import Alternation
from streamwatch.core.alerting.notification import (
    Gathered,
    IncidentAlarm,
    Notification,
    NotifiedComparison,
    NotifiedFleet,
    NotifiedHint,
    RivalPair,
)
from streamwatch.core.estimators.notifying.class_shift import ClassShift
from streamwatch.core.estimators.notifying.false_alarms import in_words
from streamwatch.core.estimators.registers.fleet import RIVALS, RULE, WorsePair
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import OTHER, Alarm, Judgement
from streamwatch.core.specs import HEADLINE, HOUR_MS, UtilityKind

# Formatting of times and shares.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_10000_MS = 253_402_300_800_000


def iso(ms: int) -> str:
    """Format a time as RFC 3339 in UTC; times outside the years 1970 to 9999 become the nearer end."""
    inside = min(max(ms, 0), _YEAR_10000_MS - 1)
    at = _EPOCH + timedelta(milliseconds=inside)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def share(value: float) -> str:
    """Format a share in percent; `unknown` for NaN."""
    return "unknown" if value != value else f"{100 * value:.1f} %"  # noqa: PLR0124  # NaN is not itself


def iso_minutes(ms: int) -> str:
    """Format a time as RFC 3339 in UTC, to the minute."""
    return f"{iso(ms)[:16]}Z"


# Sentences on a change of the error: due to classes, in segments, in the order of predictions.


def looks_like(shift: ClassShift) -> str:
    """Say whether a change of the error looks like one of class shares or of the model, with figures."""
    share_of = (
        f"{shift.share.name} went from {share(shift.share.before)} to {share(shift.share.after)} of labels"
    )
    recall_of = "recalls changed"
    if (recall := shift.recall) is not None:
        recall_of = f"recall of {recall.name} went from {share(recall.before)} to {share(recall.after)}"
    parts = (
        f"of {points(shift.change)} the error changed by, {points(shift.by_classes)} come from the shares of "
        f"the classes and {points(shift.by_model)} from recalls (± {points(shift.uncertainty, sign='')})"
    )
    if shift.looks_like == "classes":
        return f"It looks like the classes, not the model: {share_of}; {parts}."
    if shift.looks_like == "model":
        return f"It looks like the model, not the classes: {recall_of}; {parts}."
    if shift.past_differs:
        parts = "the error before the change differs from that of the whole past"
    return f"Whether the classes or the model changed is unclear: {parts}."


def sits_in(change: SegmentChange) -> str:
    """Name the value of a segment that has most of the extra errors, with the figures for that."""
    return (
        f"{share(change.share)} of the extra errors are in {change.segment} {change.value}, which has "
        f"{share(change.traffic)} of the outcomes: its error went from {share(change.before)} over its "
        f"past to {share(change.now)} recently."
    )


def points(value: float, sign: str = "+") -> str:
    """Format a difference of shares in percentage points."""
    return f"{100 * value:{sign}.1f} points".replace("-", "−")


def in_prediction_time(alarm: Alarm) -> str:
    """Say when the prediction was made at which an alarm fell; empty for an alarm in the order of labels."""
    if alarm.predicted_ms is None:
        return ""
    return (
        f" It was found in the order of predictions, at the one made at {iso(alarm.predicted_ms)}, once all "
        "labels up to it were in."
    )


def among_predictions(alarm: Alarm) -> str:
    """Say since when predictions err more or less, which precedes their labels; empty where not found."""
    change = alarm.predictions
    if change is None:
        return ""
    verb = "err more" if change.after > change.before else "err less"
    return (
        f" Predictions made since about {iso_minutes(change.since_ms)} {verb}: {share(change.before)} → "
        f"{share(change.after)} (between {iso_minutes(change.earliest_ms)} and "
        f"{iso_minutes(change.latest_ms)}); their labels came later."
    )


# Texts of early hints, which report a change among predictions and are no verdicts.


LOOK_AT = "the shares of the predicted classes, and what changed upstream at that time"
"""Advice of a hint on what to look at first."""
_OVER = {
    "no_longer_active": (
        "it no longer stands: a hint ends as many predictions later as it looks back, or when hints are no "
        "longer sent"
    ),
    "model_retired": "the model has been idle for a long time and is no longer watched",
}


def hint_title(hint: NotifiedHint) -> str:
    """Write a hint as one short line."""
    if hint.reason is not None:
        return f"Early hint on {hint.model} is over"
    given = hint.as_notified
    return f"Early hint, labels not yet in: {hint.model} {_changed(given)}, {figures(given)}"


def hint_sentences(hint: NotifiedHint) -> str:
    """Write a hint in a few sentences: what changed, since when, and what that does not imply."""
    given = iso(hint.as_notified.given_ms)
    if hint.reason is not None:
        return f"The early hint on {hint.model}, given at {given}, is over: {_OVER[hint.reason]}."
    return (
        f"This is an early hint, not a verdict: {hint.model} {_changed(hint.as_notified)} than in earlier "
        f"predictions, {figures(hint.as_notified)} (given at {given}). The labels are not in yet; only "
        "they can show whether the model errs more."
    )


BY: Final[Mapping[UtilityKind, str]] = {
    "accuracy": "",
    "balanced": " by balanced accuracy",
    "costs": " by costs",
}
"""Words after a verdict, by its utility; none for accuracy, the default."""

# Texts of comparisons: which model is better, since when, and how certain that is.


_ENDED = {
    "verdict_changed": "the models' latest common labels do not show it any more",
    "retracted": "it was early, and was not confirmed once all labels were in",
    "no_longer_compared": "the two are no longer compared",
}


def comparison_title(pair: NotifiedComparison) -> str:
    """Write a comparison as one short line."""
    if pair.reason is not None:
        by = BY[pair.utility]
        return f"No longer shown that {pair.challenger} is {_side(pair)} than {pair.champion}{by}"
    since = f"{iso_minutes(pair.since_ms)}{f' ({pair.status})' * bool(pair.status)}"
    verdict = f"{_side(pair)} than champion {pair.champion}{BY[pair.utility]}"
    return f"Challenger {pair.challenger} is {verdict} since {since}"


def comparison_sentences(pair: NotifiedComparison) -> str:
    """Write a comparison in a few sentences: which model is better, the figures, and what can be done."""
    if pair.reason is not None:
        return (
            f"That {pair.challenger} is {_side(pair)} than {pair.champion}{BY[pair.utility]} since "
            f"{iso(pair.since_ms)} is no longer shown: {_ENDED[pair.reason]}."
        )
    if pair.basis == "labels":
        rests = "It is by the order of labels, which labels that come late in a biased way can falsify."
    elif pair.status == "confirmed":
        rests = "It is by cohorts of prediction time, and confirmed: all labels of these predictions are in."
    else:
        rests = (
            "It is by cohorts of prediction time, and early: it is confirmed or retracted once all labels of "
            "these predictions are in."
        )
    return (
        f"On ids that both have predicted, {pair.challenger} is {_side(pair)} than {pair.champion}"
        f"{BY[pair.utility]} since {iso(pair.since_ms)}, as of {iso(pair.as_of_ms)}. {rests}"
    )


def _side(pair: NotifiedComparison) -> str:
    return "better" if pair.verdict > 0 else "worse"


def figures(hint: ActiveHint) -> str:
    """Write the value before a hint's change and the one now: shares in percent, scores as numbers."""
    if hint.predicted_class is not None:
        return f"{share(hint.before)} → {share(hint.now)} of predictions"
    return f"{_score(hint.before)} → {_score(hint.now)}"


def _changed(hint: ActiveHint) -> str:
    if hint.predicted_class is None:
        return f"has {'higher' if hint.more else 'lower'} scores of the class it predicts"
    return f"predicts {class_of(hint)} {'more' if hint.more else 'less'} often"


def class_of(hint: ActiveHint) -> str:
    """Name the class whose share changed; classes that are not counted by name are named together."""
    return "classes beyond its first eight" if hint.predicted_class == OTHER else f"{hint.predicted_class}"


def _score(value: float) -> str:
    return "unknown" if value != value else f"{value:.3f}"  # noqa: PLR0124  # NaN is not itself


REASONS = {
    "back_to_level": "the error is back at its earlier level",
    "accepted_as_new_level": "the error did not come back, and this level now counts as normal",
    "verdict_changed": "the verdict has changed",
    "retracted": "an early verdict was not confirmed once all labels were in",
    "labels_changed": "the mix of labels that arrived has changed; predictions of that time err as those "
    "before them, as far as their cohorts show",
    "model_retired": "the model has been idle for a long time and is no longer watched",
}


def judged(judgement: Judgement) -> str:
    """Write a verdict on a model as a predicate: `is worse than no change since …`."""
    whom = _opponent(judgement)
    sentences = {
        1: f"is better than {whom}",
        -1: f"is worse than {whom}",
        0: f"is no longer shown to be better or worse than {whom}",
    }
    since = f"{sentences[judgement.verdict]}{BY[judgement.utility]} since {iso(judgement.since_ms)}"
    if judgement.basis == "labels":
        return f"{since}, outcome {judgement.since:,}"
    parts = [each for each in (judgement.status, between(judgement)) if each]
    return f"{since} ({', '.join(parts)})" if parts else since


def between(judgement: Judgement) -> str:
    """Write the interval of the time since when a verdict by cohorts holds; empty where it has none."""
    return _interval(judgement.earliest_ms, judgement.latest_ms)


def _interval(earliest_ms: int | None, latest_ms: int | None) -> str:
    if latest_ms is None:
        return ""
    latest = iso_minutes(latest_ms)
    if earliest_ms is None:
        return f"{latest} at the latest"
    return f"between {iso_minutes(earliest_ms)} and {latest}"


def _opponent(judgement: Judgement) -> str:
    """Name the opponent of a verdict; one by cohorts that is not `worse` is against both opponents."""
    if judgement.basis == "labels":
        return "no change" if judgement.opponent == HEADLINE else judgement.opponent
    if judgement.verdict < 0:
        return "the majority" if judgement.opponent == "majority" else "no change"
    return "no change and the majority" if judgement.verdict > 0 else "no change or the majority"


def _certainty(judgement: Judgement) -> str:
    """Explain the status of a verdict by cohorts: early, confirmed or retracted; empty for others."""
    meanings = {
        "early": "It is early: it counts on labels being as late as they were so far, and is confirmed or "
        "retracted once all labels of these predictions are in.",
        "confirmed": "It is confirmed: the labels of these predictions are in.",
        "retracted": "An early verdict is retracted: once all labels of its predictions were in, they did "
        "not confirm it.",
        "": "",
    }
    return meanings[judgement.status]


def _alternates(alternation: Alternation, judgement: Judgement) -> str:
    """Write how a verdict alternates, and with which period, as a predicate."""
    by = BY[judgement.utility]
    sentences = f"alternates between worse than {_opponent(judgement)} and not worse{by}"
    if (period_ms := alternation.period_ms) is None:
        return sentences
    if alternation.is_weekly:
        return f"{sentences}, about once a week"
    if not alternation.is_daily:
        return f"{sentences}, about every {period_ms / HOUR_MS:.0f} hours"
    start, end = alternation.worse_from_hour, alternation.worse_until_hour
    if start is None or end is None:
        return f"{sentences}, about once a day"
    return f"{sentences}, about once a day: worse from {start:02d}:00 to {end:02d}:00 UTC"


def title(notification: Notification) -> str:
    """Write one short line: how the model does now, and which detector or verdict shows that."""
    test = "Test: " if notification.test else ""
    if notification.kind == "digest":
        return f"{test}{_digest_title(notification)}"
    if notification.hint is not None:
        return f"{test}{hint_title(notification.hint)}"
    if notification.comparison is not None:
        update = "Update: " if notification.kind == "updated" else ""
        return f"{test}{update}{comparison_title(notification.comparison)}"
    if notification.kind == "retraining":
        return f"{test}Retraining of {notification.model} is due: {_state(notification)}"
    update = "Update: " if notification.kind == "updated" else ""
    return f"{test}{update}{_state(notification)}"


def _digest_title(notification: Notification) -> str:
    if notification.gathered is not None:
        return gathered_title(notification.gathered)
    if notification.fleet is not None:
        return fleet_title(notification.fleet)
    n = 0 if notification.digest is None else notification.digest.alarms
    return f"{n} older drift alarm{'s' if n != 1 else ''} found while catching up"


def gathered_title(gathered: Gathered) -> str:
    """Write one line for a digest of notifications: its models, alarms that began, alarms that ended."""
    models = f"{gathered.models} model{'s' if gathered.models != 1 else ''}: " if gathered.models else ""
    others = gathered.notifications - gathered.firing - gathered.resolved
    parts = ", ".join(
        f"{number} {words}"
        for number, words in (
            (gathered.firing, "began"),
            (others, "have news" if others != 1 else "has news"),
            (gathered.resolved, "are over" if gathered.resolved != 1 else "is over"),
        )
        if number
    )
    return f"{models}{gathered.notifications} notifications at once ({parts})"


def gathered_lines(gathered: Gathered) -> list[str]:
    """Write a line for each notification in a digest, with the labels of its model in brackets."""
    return [
        f"{title(each)}{f' ({labels})' if (labels := labelled(each.labels)) else ''}"
        for each in gathered.listed
    ]


def labelled(labels: Mapping[str, str]) -> str:
    """Write labels as in `team=payments, tier=gold`."""
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def gathered_sentences(gathered: Gathered) -> str:
    """Join all lines of a digest of notifications, and say how many more there were."""
    lines = "\n".join(f"• {line}" for line in gathered_lines(gathered))
    more = gathered.notifications - len(gathered.listed)
    beyond = f"\nand {more} more; the page and the API have all." if more > 0 else ""
    return f"{lines}{beyond}\n"


def fleet_title(fleet: NotifiedFleet) -> str:
    """Write one line for a list of worse models: its length, and how many pairs were added or removed."""
    counts = ((fleet.number_added * (fleet.before_ms is not None), "added"), (fleet.number_left, "left"))
    changes = ", ".join(f"{number} {words}" for number, words in counts if number)
    models = f"{fleet.models or 'no'} model{'s' if fleet.models != 1 else ''}"
    return f"Worse by the fleet's rule: {models}{f' ({changes})' * bool(changes)}"


def fleet_sentences(fleet: NotifiedFleet) -> str:
    """Write the list of worse models: its guarantee (which a cut text keeps), then changes, then pairs."""
    promise = (
        f"List of {iso_minutes(fleet.at_ms)}, of {fleet.pairs:,} pairs of a model and an opponent; the share "
        f"is {fleet.share:.0%}: {RULE}. A model that has recovered may be listed.\n"
    )
    lines = [promise]
    if fleet.before_ms is not None:
        before = iso_minutes(fleet.before_ms)
        for words, number, pairs in (
            (f"Added since the list of {before}", fleet.number_added, fleet.added),
            (f"Listed at {before} and no longer", fleet.number_left, fleet.left),
        ):
            beyond = f" and {number - len(pairs):,} more" * (number > len(pairs))
            lines += [f"{words}: {'; '.join(map(_pair, pairs))}{beyond}.\n"] * bool(number)
    lines += [f"• {_pair(pair)}{_held(pair)}\n" for pair in fleet.listed]
    if (more := fleet.number - len(fleet.listed)) > 0:
        lines.append(f"and {more:,} more; the page and the API have all.\n")
    return "".join(lines)


def _pair(pair: WorsePair | RivalPair) -> str:
    return f"{pair.model}, worse than {RIVALS[pair.opponent]}"


def _held(pair: WorsePair) -> str:
    """Say since when a listed pair's verdict is `worse`; or name its verdict now, if that is another."""
    if pair.verdict != "worse":
        return f", verdict now: {'better' if pair.verdict == 'better' else 'no clear difference'}"
    if pair.since_ms is None:
        return ""
    interval = _interval(pair.earliest_ms, pair.latest_ms)
    return f" since {iso_minutes(pair.since_ms)}{f' ({interval})' * bool(interval)}"


def description(notification: Notification, external_url: str = "") -> str:
    """Write a few sentences: what was found, when, and the figures, news first; then what to look at."""
    look = look_first(notification, external_url)
    return " ".join(filter(None, (_found(notification), look)))


def look_first(notification: Notification, external_url: str = "") -> str:
    """Say what to look at first, and where; empty once an incident is over.

    Parameters
    ----------
    notification
        The notification.
    external_url
        URL of the page; if empty, no address is written.
    """
    if notification.kind == "resolved":
        return ""
    if notification.hint is not None:
        what = LOOK_AT
    elif notification.comparison is not None:
        what = "the lead and its interval"
    elif notification.digest is not None:
        what = "the models with most alarms, which the page lists first"
    elif notification.gathered is not None:
        what = "what these models have in common: a topic, a source of labels, a release"
    elif notification.fleet is not None:
        what = "the models that were added, and what the new ones have in common"
    elif (shift := notification.shift) is not None and shift.looks_like == "classes":
        what = "the share of each class"
    elif any(_misleads(part) for part in notification.parts):
        what = "the recall of each class and kappa, and whether monitors.utility suits this model"
    elif any(part.is_open and part.alarm.judgement is None for part in notification.parts):
        what = "the recall of each class, and what changed upstream at that time"
    else:
        what = "the accuracy and its baselines, and the recall of each class"
    page = link(external_url, notification)
    where = "the page of comparisons" if notification.comparison is not None else "the model's page"
    return f"Look first at {what}: {page}" if page else f"Look first at {what}, on {where}."


def _digest_found(notification: Notification) -> str:
    if notification.gathered is not None:
        return gathered_sentences(notification.gathered)
    if notification.fleet is not None:
        return fleet_sentences(notification.fleet)
    digest = notification.digest
    if digest is None:
        return ""
    most = ", ".join(f"{t.model} {t.detector} {t.alarms}×" for t in digest.tallies)
    alarms = f"{digest.alarms} alarm{'s' if digest.alarms != 1 else ''}"
    pairs = f"{digest.series} pair{'s' if digest.series != 1 else ''} of a model and a detector"
    return f"{alarms} of {pairs}, {iso(digest.first_at_ms)} to {iso(digest.last_at_ms)}: {most}."


def _found(notification: Notification) -> str:
    if notification.kind == "digest":
        return _digest_found(notification)
    if notification.hint is not None:
        return hint_sentences(notification.hint)
    if notification.comparison is not None:
        return comparison_sentences(notification.comparison)
    if notification.kind == "retraining":
        return (
            f"{notification.model} has been worse since {iso(notification.started_at_ms)}, for as long as "
            f"alerts.retraining_after says. {' '.join(map(_sentence, notification.parts))}"
        )
    fresh = [part for part in notification.parts if part.alarm.detector in notification.news]
    others = [part for part in notification.parts if part.is_open and part not in fresh]
    sentences = [_sentence(part) for part in fresh]
    if notification.shift is not None and any(part.is_open for part in fresh):
        sentences.append(looks_like(notification.shift))
    if notification.segment is not None and any(part.is_open for part in fresh):
        sentences.append(sits_in(notification.segment))
    if others:
        sentences.append(f"Also open: {', '.join(_mention(part) for part in others)}.")
    return " ".join(sentences)


def link(external_url: str, notification: Notification) -> str:
    """URL of the page of the model, of comparisons, or of all (digests); empty without `external_url`."""
    if not external_url or not notification.model:
        return external_url
    parts = urlsplit(external_url)
    page = (
        f"/model/{quote(notification.model, safe='')}" if notification.comparison is None else "/comparisons"
    )
    return urlunsplit(parts._replace(path=parts.path or "/", fragment=page))


def _state(notification: Notification) -> str:
    """Say how the model does by the open alarms; of an incident that is over, what ended."""
    model = notification.model
    parts = [part for part in notification.parts if part.is_open] or [
        part for part in notification.parts if part.reason in ("verdict_changed", "retracted")
    ]
    if not parts:
        return f"Drift of {model} resolved ({', '.join(notification.detectors)})"
    sentences = [
        (
            judged(part.alarm.judgement)
            if part.alternation is None
            else _alternates(part.alternation, part.alarm.judgement)
        )
        + (" (by accuracy, which says little about rare classes)" * _misleads(part))
        for part in parts
        if part.alarm.judgement is not None
    ]
    drifts = [part for part in parts if part.alarm.judgement is None]
    if drifts:
        newest = max(drifts, key=lambda part: part.alarm.outcome)
        verb = "errs less" if newest.alarm.after < newest.before else "errs more"
        found_by = ", ".join(part.alarm.detector for part in drifts)
        unconfirmed = ", unconfirmed" * all(part.is_unconfirmed for part in drifts)
        sentences.append(
            f"{verb}: {share(newest.before)} → {share(newest.alarm.after)} ({found_by}{unconfirmed})"
        )
    return f"{model} {'; '.join(sentences)}"


def _sentence(part: IncidentAlarm) -> str:
    """Write one alarm of an incident in sentences."""
    alarm = part.alarm
    if alarm.judgement is not None and part.alternation is not None and part.is_open:
        changes, since = part.alternation.changes, iso(part.alternation.first_ms)
        return (
            f"{alarm.model} {_alternates(part.alternation, alarm.judgement)}. The verdict has changed sides "
            f"{changes} times since {since}; at the last change the model {judged(alarm.judgement)}. Further "
            f"changes are counted and not notified until a side has held for a week.{_of_rare(part)}"
        )
    if alarm.judgement is not None:
        retired = f" The alarm ends: {REASONS['model_retired']}." if part.reason == "model_retired" else ""
        if alarm.judgement.basis == "cohorts":
            certainty = f"{f' {status}' if (status := _certainty(alarm.judgement)) else ''}{_delays(part)}"
            return (
                f"{alarm.model} {judged(alarm.judgement)}, by cohorts of {alarm.n_eff:,.0f} predictions; "
                f"as of {iso(alarm.event_ms)}.{certainty}{_of_rare(part)}{retired}"
            )
        return (
            f"{alarm.model} {judged(alarm.judgement)}. The verdict was reached at outcome {alarm.outcome}, "
            f"{iso(alarm.event_ms)}, after {alarm.n_eff:,.0f} comparable outcomes; it is "
            f"about now, not about the whole past.{_quick(alarm.judgement)}{_of_rare(part)}{retired}"
        )
    if part.reason is not None:
        began = f"The drift of {alarm.model} that {alarm.detector} found at {iso(part.started_at_ms)} is over"
        return f"{began}: {REASONS[part.reason]}."
    return (
        f"{alarm.detector} found that the error of {alarm.model} went from {share(alarm.before)} to "
        f"{share(alarm.after)} (outcome {alarm.outcome} at {iso(alarm.event_ms)}; "
        f"statistic {alarm.statistic:.6g}, threshold {alarm.threshold:.6g}).{in_prediction_time(alarm)}"
        f"{among_predictions(alarm)}{_confirmed(part)}{_again(part)}{_false_ones(part)}"
    )


def _delays(part: IncidentAlarm) -> str:
    """Warn that the label delays which an early verdict relies on have changed; empty if they have not."""
    if not part.delays_moved or part.alarm.judgement is None or part.alarm.judgement.status != "early":
        return ""
    return (
        f" How late labels of {' and '.join(part.delays_moved)} are has changed lately: until predictions "
        f"with the new delays have all their labels, this verdict may be wrong."
    )


def _false_ones(part: IncidentAlarm) -> str:
    """Say how often the detector is expected to raise a false alarm; empty where unknown."""
    if part.false_monthly is None:
        return ""
    return (
        f" At this model's rate of outcomes and dependence of errors, {part.alarm.detector} is expected to "
        f"raise a false alarm {in_words(part.false_monthly)}."
    )


def _confirmed(part: IncidentAlarm) -> str:
    """Say whether cohorts of predictions confirm an alarm from labels; empty where not checked."""
    if (found := part.confirmation) is not None:
        return (
            f" This is confirmed: of predictions made since {iso_minutes(found.since_ms)}, "
            f"{share(found.after)} are wrong, of those before {share(found.before)}, however late their "
            "labels come."
        )
    if part.is_unconfirmed and part.expected_ms is not None:
        return (
            " This is unconfirmed: labels come late, and more or less traffic can look like it. It will be "
            "confirmed, or resolved, when enough labels of predictions of that time are in, from about "
            f"{iso_minutes(part.expected_ms)} on."
        )
    return ""


def _quick(judgement: Judgement) -> str:
    """Warn of a verdict that only quick labels contributed to; empty for others."""
    if not judgement.quick_labels_only:
        return ""
    return (
        " Only quick labels were in, because the model was watched for less than join.horizon and many "
        "predictions still waited: slower labels may change the verdict."
    )


def _misleads(part: IncidentAlarm) -> bool:
    """Tell whether a part is an open verdict by accuracy on a model that recognizes rare classes."""
    return part.is_open and part.accuracy_misleads


def _of_rare(part: IncidentAlarm) -> str:
    """Qualify a verdict by accuracy where one class has nearly all labels; empty elsewhere."""
    if not _misleads(part):
        return ""
    return (
        " The criterion is accuracy, and always predicting the largest class (90 % of labels or more) "
        "is hard to beat; yet the model distinguishes the others (kappa is 3 standard errors above 0). "
        "Set monitors.utility to balanced, or to costs of each mistake, to judge it by its purpose."
    )


def _mention(part: IncidentAlarm) -> str:
    """Mention an alarm that is no news, in a few words."""
    since = f"{part.alarm.detector} since {iso(part.started_at_ms)}"
    return since if part.alarms == 1 else f"{since} ({part.alarms} alarms)"


def _again(part: IncidentAlarm) -> str:
    return f" Alarm {part.alarms} since {iso(part.started_at_ms)}." if part.alarms > 1 else ""
