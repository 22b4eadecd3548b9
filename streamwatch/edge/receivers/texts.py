"""Texts of notifications, the same for every receiver."""

from __future__ import annotations

from urllib.parse import quote, urlsplit, urlunsplit

from streamwatch.core.alerting.notification import IncidentAlarm, Notification
from streamwatch.core.events import Judgement
from streamwatch.core.specs import HEADLINE
from streamwatch.edge.receivers.change_texts import among_predictions, in_prediction_time, looks_like, sits_in
from streamwatch.edge.receivers.hint_texts import LOOK_AT, hint_sentences, hint_title
from streamwatch.edge.receivers.times import iso, share

REASONS = {
    "back_to_level": "the error is back at its earlier level",
    "accepted_as_new_level": "the error did not come back, and this level now counts as normal",
    "verdict_changed": "the verdict has changed",
    "model_retired": "the model has been idle for a long time and is no longer watched",
}


def judged(judgement: Judgement) -> str:
    """Say a verdict on a model, as the rest of a sentence."""
    whom = "no change" if judgement.opponent == HEADLINE else judgement.opponent
    said = {
        1: f"is better than {whom}",
        -1: f"is worse than {whom}",
        0: f"is no longer shown to be better or worse than {whom}",
    }
    return f"{said[judgement.verdict]} since {iso(judgement.since_ms)}, outcome {judgement.since:,}"


def title(notification: Notification) -> str:
    """One line, for a phone: how the model does now, and who says so."""
    digest = notification.digest
    test = "Test: " if notification.test else ""
    if digest is not None:
        n = digest.alarms
        return f"{test}{n} older drift alarm{'s' if n != 1 else ''} found while catching up"
    if notification.hint is not None:
        return f"{test}{hint_title(notification.hint)}"
    update = "Update: " if notification.kind == "updated" else ""
    return f"{test}{update}{_state(notification)}"


def description(notification: Notification, external_url: str = "") -> str:
    """A few sentences: what was found, when, and what that rests on; news first, what to look at last."""
    look = look_first(notification, external_url)
    return " ".join(filter(None, (_found(notification), look)))


def look_first(notification: Notification, external_url: str = "") -> str:
    """Say what to look at first, and where; empty once an incident is over.

    Parameters
    ----------
    notification
        What it is about.
    external_url
        Where the page is; without it, only what to look at is said.
    """
    if notification.kind == "resolved":
        return ""
    if notification.hint is not None:
        what = LOOK_AT
    elif notification.digest is not None:
        what = "the models with most alarms, which the page lists first"
    elif (shift := notification.shift) is not None and shift.looks_like == "classes":
        what = "the share of each class"
    elif any(_misleads(part) for part in notification.parts):
        what = "the recall of each class and kappa, and whether monitors.utility suits this model"
    elif any(part.is_open and part.alarm.judgement is None for part in notification.parts):
        what = "the recall of each class, and what changed upstream at that time"
    else:
        what = "the accuracy and its baselines, and the recall of each class"
    page = link(external_url, notification)
    return f"Look first at {what}: {page}" if page else f"Look first at {what}, on the model's page."


def _found(notification: Notification) -> str:
    digest = notification.digest
    if digest is not None:
        most = ", ".join(f"{t.model} {t.detector} {t.alarms}×" for t in digest.tallies)
        return (
            f"{digest.alarms} alarms of {digest.series} model and detector pairs, "
            f"{iso(digest.first_at_ms)} to {iso(digest.last_at_ms)}: {most}."
        )
    if notification.hint is not None:
        return hint_sentences(notification.hint)
    fresh = [part for part in notification.parts if part.alarm.detector in notification.news]
    others = [part for part in notification.parts if part.is_open and part not in fresh]
    said = [_sentence(part) for part in fresh]
    if notification.shift is not None and any(part.is_open for part in fresh):
        said.append(looks_like(notification.shift))
    if notification.segment is not None and any(part.is_open for part in fresh):
        said.append(sits_in(notification.segment))
    if others:
        said.append(f"Also open: {', '.join(_mention(part) for part in others)}.")
    return " ".join(said)


def link(external_url: str, notification: Notification) -> str:
    """Address of the model's page, or of the page of all for a digest; empty without `external_url`."""
    if not external_url or not notification.model:
        return external_url
    parts = urlsplit(external_url)
    place = f"/model/{quote(notification.model, safe='')}"
    return urlunsplit(parts._replace(path=parts.path or "/", fragment=place))


def _state(notification: Notification) -> str:
    """How the model does by the alarms that are open; at the end, what ended."""
    model = notification.model
    parts = [part for part in notification.parts if part.is_open] or [
        part for part in notification.parts if part.reason == "verdict_changed"
    ]
    if not parts:
        return f"Drift of {model} resolved ({', '.join(notification.detectors)})"
    said = [
        judged(part.alarm.judgement)
        + (" (by accuracy, which says little about rare classes)" * _misleads(part))
        for part in parts
        if part.alarm.judgement is not None
    ]
    drifts = [part for part in parts if part.alarm.judgement is None]
    if drifts:
        newest = max(drifts, key=lambda part: part.alarm.outcome)
        verb = "errs less" if newest.alarm.after < newest.before else "errs more"
        found_by = ", ".join(part.alarm.detector for part in drifts)
        said.append(f"{verb}: {share(newest.before)} → {share(newest.alarm.after)} ({found_by})")
    return f"{model} {'; '.join(said)}"


def _sentence(part: IncidentAlarm) -> str:
    """What one part says."""
    alarm = part.alarm
    if alarm.judgement is not None:
        retired = f" The alarm ends: {REASONS['model_retired']}." if part.reason == "model_retired" else ""
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
        f"{among_predictions(alarm)}{_again(part)}"
    )


def _quick(judgement: Judgement) -> str:
    """Warn of a verdict before which no label could take long."""
    if not judgement.quick_labels_only:
        return ""
    return (
        " Only quick labels were in, because the model was watched for less than join.horizon: slower ones "
        "may change the verdict."
    )


def _misleads(part: IncidentAlarm) -> bool:
    """Tell whether it is an open verdict by accuracy on a model that tells its rare classes."""
    return part.is_open and part.accuracy_misleads


def _of_rare(part: IncidentAlarm) -> str:
    """Say what a verdict by accuracy is worth where one class is nearly all there is."""
    if not _misleads(part):
        return ""
    return (
        " The criterion is accuracy, and always predicting the largest class (90 % of labels or more) "
        "is hard to beat; yet the model distinguishes the others (kappa is 3 standard errors above 0). "
        "Set monitors.utility to balanced, or to costs of each mistake, to judge it by its purpose."
    )


def _mention(part: IncidentAlarm) -> str:
    """A part that is no news, in a few words."""
    since = f"{part.alarm.detector} since {iso(part.started_at_ms)}"
    return since if part.alarms == 1 else f"{since} ({part.alarms} alarms)"


def _again(part: IncidentAlarm) -> str:
    return f" Alarm {part.alarms} since {iso(part.started_at_ms)}." if part.alarms > 1 else ""
