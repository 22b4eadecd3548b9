"""Meaning of an HTTP status for a notification."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from streamwatch.core.alerting.receiver import Delivered, DeliveryResult, Failed, Gone, Refused

_AGAIN = frozenset({408, 425, 429})
"""Client errors that pass."""
MEANINGS = {
    "address_refused": "the URL leads to a link-local address, which is never spoken to",
    "connection": "the connection was refused, or broke off",
    "dns": "the host name does not resolve",
    "invalid_url": "the URL cannot be used",
    "protocol": "the answer is not HTTP",
    "timeout": "no answer in time",
    "tls": "the certificate is not trusted, or TLS failed",
}
"""Reasons of failures in words, for people who try a receiver by hand."""


def meaning(reason: str) -> str:
    """A reason in words."""
    if reason.startswith("http_3"):
        return f"answered {reason[5:]}: redirects are not followed, give the final URL"
    return f"answered {reason[5:]}" if reason.startswith("http_") else MEANINGS.get(reason, reason)


def result_of(status: int, retry_after: str | None, now_ms: int) -> DeliveryResult:
    """2xx is delivered; 410 ends everything; other client errors end this notification; the rest may pass."""
    reason = f"http_{status}"
    if 200 <= status < 300:
        return Delivered()
    if status == 410:
        return Gone(reason)
    if 400 <= status < 500 and status not in _AGAIN:
        return Refused(reason)
    return Failed(reason, seconds_of(retry_after, now_ms))


def seconds_of(retry_after: str | None, now_ms: int) -> float | None:
    """`Retry-After` as seconds from now, given in seconds or as an HTTP date; None where it says nothing."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.fromtimestamp(now_ms / 1000, UTC)).total_seconds())
