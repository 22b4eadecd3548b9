"""The words in which people are told, the same everywhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streamwatch.core.notices import Notice

REASONS = {
    "back_to_level": "the error is back at the level before it",
    "accepted_as_new_level": "it never came back; this counts as the new level from now on",
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


def title(notice: Notice) -> str:
    """One line, for a phone."""
    alarm = notice.alarm
    test = "Test: " if notice.test else ""
    if alarm is None:
        n = notice.alarms
        return f"{test}{n} older drift alarm{'s' if n != 1 else ''} found while catching up"
    change = f"{share(notice.before)} → {share(alarm.after)}"
    match notice.kind:
        case "resolved":
            return f"{test}Drift of {alarm.model} resolved ({alarm.detector})"
        case _:
            verb = "errs less" if alarm.after < notice.before else "errs more"
            return f"{test}{alarm.model} {verb}: {change} ({alarm.detector})"


def description(notice: Notice) -> str:
    """A few sentences: what was found, when, and what that rests on."""
    alarm, digest = notice.alarm, notice.digest
    if digest is not None:
        most = ", ".join(f"{t.model} {t.detector} {t.alarms}×" for t in digest.tallies)
        return (
            f"{digest.alarms} alarms of {digest.series} model and detector pairs, "
            f"{iso(digest.first_at_ms)} to {iso(digest.last_at_ms)}: {most}."
        )
    if alarm is None:
        return ""
    if notice.kind == "resolved" and notice.reason is not None:
        began = (
            f"The drift of {alarm.model} that {alarm.detector} found at {iso(notice.started_at_ms)} is over"
        )
        return f"{began}: {REASONS[notice.reason]}."
    again = f" Alarm {notice.alarms} since {iso(notice.started_at_ms)}." if notice.alarms > 1 else ""
    return (
        f"{alarm.detector} found that the error of {alarm.model} went from {share(alarm.before)} to "
        f"{share(alarm.after)} (outcome {alarm.outcome} at {iso(alarm.at_ms)}; "
        f"statistic {alarm.statistic:.6g}, threshold {alarm.threshold:.6g}).{again}"
    )
