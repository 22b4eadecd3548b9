"""Times and shares as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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


def iso_minutes(ms: int) -> str:
    """A time as RFC 3339 to the minute, in UTC."""
    return f"{iso(ms)[:16]}Z"
