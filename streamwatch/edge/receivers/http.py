"""Posts notifications over HTTP: one attempt, in bounded time, without redirects, proxies or cookies.

A failure is reported as one of the reasons in `MEANINGS`. Neither the URL (a Slack URL is a secret) nor the
text of an exception is passed on.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from streamwatch import __version__
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Delivered, DeliveryResult, Failed, Gone, Refused
from streamwatch.edge.outgoing import AddressRefusedError, GuardedResolver, SystemResolver, refused
from streamwatch.edge.receivers.kind import EndpointSpec, Format, HttpRequestBody, Reminder

# Meaning of an HTTP status for a notification.


_AGAIN = frozenset({408, 425, 429})
"""Client errors that are temporary, so that the notification is sent again."""
MEANINGS = {
    "address_refused": "the URL leads to a link-local address, which is never spoken to",
    "connection": "the connection was refused, or broke off",
    "dns": "the host name does not resolve",
    "invalid_url": "the URL cannot be used",
    "protocol": "the answer is not HTTP",
    "timeout": "no answer in time",
    "tls": "the certificate is not trusted, or TLS failed",
    "http_400": "answered 400: it does not take this form of message; check the type of the receiver",
    "http_401": "answered 401: check the credentials, which are in the URL, routing_key or secrets",
    "http_403": "answered 403: check the credentials, which are in the URL, routing_key or secrets",
    "http_404": "answered 404: nothing takes messages at this URL; check its path, or get a new one there",
    "http_405": "answered 405: nothing takes messages at this URL; check its path",
    "http_410": "answered 410: this URL was withdrawn; get a new one there",
    "http_413": "answered 413: the message is too large for it",
    "http_429": "answered 429: it takes no more for now; try again later",
}
"""Reason of a failure → its explanation, for people who test a receiver by hand."""


def meaning(reason: str) -> str:
    """Explain a reason."""
    if reason in MEANINGS or not reason.startswith("http_"):
        return MEANINGS.get(reason, reason)
    answered = f"answered {reason[5:]}"
    if reason.startswith("http_3"):
        return f"{answered}: redirects are not followed, give the final URL"
    if reason.startswith("http_5"):
        return f"{answered}: it failed, or has too much to do; its own log tells which"
    return answered


def result_of(status: int, retry_after: str | None, now_ms: int) -> DeliveryResult:
    """Classify a status: 2xx is delivered, 410 ends the receiver, most other 4xx give up, the rest retry."""
    reason = f"http_{status}"
    if 200 <= status < 300:
        return Delivered()
    if status == 410:
        return Gone(reason)
    if 400 <= status < 500 and status not in _AGAIN:
        return Refused(reason)
    return Failed(reason, seconds_of(retry_after, now_ms))


def seconds_of(retry_after: str | None, now_ms: int) -> float | None:
    """Parse `Retry-After`, seconds or an HTTP date, to seconds from now; None where absent or invalid."""
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


CONNECT_SECONDS = 5.0
"""Limit for making a connection, within `timeout_seconds` for the whole request."""
_MIN_SECONDS = 0.001


class HttpReceiver:
    """A receiver that notifications are posted to.

    Parameters
    ----------
    spec
        Its URL, time limit, and which notifications it gets.
    form
        Makes the request bodies.
    reminder
        Makes the request that repeats open incidents, every `spec.repeat_interval_seconds`; None: never.
    resolver
        Resolves host names; the system's by default. Addresses that it returns are checked.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        form: Format,
        reminder: Reminder | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._spec = spec
        self._url = URL(spec.url)
        self._form = form
        self._reminder = reminder
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        """Name of the receiver in the settings."""
        return self._spec.name

    @property
    def host(self) -> str:
        """Host of its URL, which is no secret."""
        return self._url.host or ""

    @property
    def repeat_interval_seconds(self) -> float | None:
        """Seconds between reminders; None: never."""
        return self._spec.repeat_interval_seconds if self._reminder else None

    def wants(self, notification: Notification) -> bool:
        """Tell whether it is sent a notification, by its kind, its severities and the model's labels.

        A digest of notifications (`gathered`) is sent whatever its kind: all that it lists were wanted.
        """
        spec = self._spec
        if notification.comparison is not None:
            wanted = spec.comparisons
        elif notification.fleet is not None:
            wanted = spec.digest
        else:
            wanted = spec.retraining if notification.kind == "retraining" else spec.alarms
        if not wanted and notification.gathered is None:
            return False
        if spec.severities is not None and spec.severities.isdisjoint(notification.severities):
            return False
        if not notification.model:
            return True
        labels = notification.labels
        return all(labels.get(name) == value for name, value in spec.matchers.items())

    async def open(self) -> None:
        """Open an HTTP session in the running event loop."""
        if self._session is None:
            resolver = GuardedResolver(self._resolver or SystemResolver())
            trusted = ssl.create_default_context(cafile=self._spec.ca_file) if self._spec.ca_file else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=resolver, ssl=trusted, limit=4),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=max(self._spec.timeout_seconds, _MIN_SECONDS), connect=CONNECT_SECONDS
                ),
                headers={"User-Agent": f"streamwatch/{__version__}"},
                trust_env=False,
            )

    async def deliver(self, notification: Notification, now_ms: int) -> DeliveryResult:
        """Post one notification."""
        return await self._post(self._form.request_body(notification, now_ms), now_ms)

    async def remind(self, open_incidents: Sequence[Notification], now_ms: int) -> DeliveryResult:
        """Post the alarms of all open incidents at once; `Refused` without a reminder."""
        if self._reminder is None:
            return Refused("no_reminders")
        return await self._post(self._reminder(open_incidents, now_ms), now_ms)

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, request: HttpRequestBody, now_ms: int) -> DeliveryResult:
        session = self._session
        assert session is not None, "opened before anything is delivered"  # noqa: S101
        if refused(self.host):
            return Failed("address_refused")
        headers = {"Content-Type": "application/json", **request.headers}
        try:
            async with session.post(
                self._url, data=request.body, headers=headers, allow_redirects=False
            ) as answer:
                return result_of(answer.status, answer.headers.get("Retry-After"), now_ms)
        except (aiohttp.ClientError, OSError) as error:
            return Failed(reason_of(error))


_REASONS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (TimeoutError, "timeout"),
    (aiohttp.ClientConnectorDNSError, "dns"),
    ((aiohttp.ClientSSLError, ssl.SSLError), "tls"),
    (aiohttp.InvalidURL, "invalid_url"),
    ((aiohttp.ClientConnectionError, OSError), "connection"),
)
"""Exception type → reason; the first match counts, as some types are subclasses of later ones."""


def reason_of(error: BaseException) -> str:
    """Return the reason, a key of `MEANINGS`, for the exception of a failed post."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, AddressRefusedError):
            return "address_refused"
        seen = seen.__cause__ or seen.__context__
    return next((reason for kinds, reason in _REASONS if isinstance(error, kinds)), "protocol")
