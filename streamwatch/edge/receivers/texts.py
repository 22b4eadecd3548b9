"""Texts of notifications, the same for every receiver."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.events import Judgement
from streamwatch.core.specs import HEADLINE

REASONS = {
    "back_to_level": "the error is back at the level before it",
    "accepted_as_new_level": "it never came back; this counts as the new level from now on",
    "verdict_changed": "the verdict has changed",
    "model_retired": "the model has been idle for long and is not watched any more",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_10000_MS = 253_402_300_800_000


def iso(ms: int) -> str:
    """A time as RFC 3339, in UTC; what lies outside of the calendar is its nearest end."""
    inside = min(max(ms, 0), _YEAR_10000_MS - 1)
    at = _EPOCH + timedelta(milliseconds=inside)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def share(value: float) -> str:
    """An error rate in percent."""
    return "unknown" if value != value else f"{100 * value:.1f} %"  # noqa: PLR0124  # NaN is not itself


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
    """One line, for a phone."""
    alarm = notification.alarm
    test = "Test: " if notification.test else ""
    if alarm is None:
        n = notification.alarms
        return f"{test}{n} older drift alarm{'s' if n != 1 else ''} found while catching up"
    if alarm.judgement is not None:
        return f"{test}{alarm.model} {judged(alarm.judgement)}"
    change = f"{share(notification.before)} → {share(alarm.after)}"
    match notification.kind:
        case "resolved":
            return f"{test}Drift of {alarm.model} resolved ({alarm.detector})"
        case _:
            verb = "errs less" if alarm.after < notification.before else "errs more"
            return f"{test}{alarm.model} {verb}: {change} ({alarm.detector})"


def description(notification: Notification) -> str:
    """A few sentences: what was found, when, and what that rests on."""
    alarm, digest = notification.alarm, notification.digest
    if digest is not None:
        most = ", ".join(f"{t.model} {t.detector} {t.alarms}×" for t in digest.tallies)
        return (
            f"{digest.alarms} alarms of {digest.series} model and detector pairs, "
            f"{iso(digest.first_at_ms)} to {iso(digest.last_at_ms)}: {most}."
        )
    if alarm is None:
        return ""
    if alarm.judgement is not None:
        retired = (
            f" The alarm ends: {REASONS['model_retired']}." if notification.reason == "model_retired" else ""
        )
        return (
            f"{alarm.model} {judged(alarm.judgement)}. Said at outcome {alarm.outcome}, "
            f"{iso(alarm.event_ms)}, after {alarm.n_eff:,.0f} outcomes that could be compared; "
            f"about now, not about the whole past.{retired}"
        )
    if notification.kind == "resolved" and notification.reason is not None:
        found_at = iso(notification.started_at_ms)
        began = f"The drift of {alarm.model} that {alarm.detector} found at {found_at} is over"
        return f"{began}: {REASONS[notification.reason]}."
    again = (
        f" Alarm {notification.alarms} since {iso(notification.started_at_ms)}."
        if notification.alarms > 1
        else ""
    )
    return (
        f"{alarm.detector} found that the error of {alarm.model} went from {share(alarm.before)} to "
        f"{share(alarm.after)} (outcome {alarm.outcome} at {iso(alarm.event_ms)}; "
        f"statistic {alarm.statistic:.6g}, threshold {alarm.threshold:.6g}).{again}"
    )
