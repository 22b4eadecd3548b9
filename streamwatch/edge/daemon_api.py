"""Client of a running daemon's API, for commands and reports."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from streamwatch import __version__

_TIMEOUT_SECONDS: Final = 30.0
_MOST_BYTES: Final = 256 * 2**20
"""Most bytes of an answer."""
UNAUTHORIZED, NOT_FOUND = 401, 404


class DaemonUnreachable(Exception):  # noqa: N818 - the name says what happened
    """No streamwatch daemon answered."""


class NotThere(DaemonUnreachable):
    """The daemon answered 404: it has nothing at this path."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections within HTTP, and sends the token to the host that was asked only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request at the new URL; None where it is not to be followed."""
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if after.scheme not in {"http", "https"}:
            return None
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        to_tls = after.scheme == "https" and after.hostname == before.hostname
        if request is not None and not to_tls and before[:2] != after[:2]:
            request.remove_header("Authorization")
        return request


@dataclass(frozen=True, slots=True)
class Address:
    """URL of a daemon, its bearer token if it requires one, and certificates to trust for HTTPS."""

    url: str
    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def get(self, path: str) -> bytes:
        """Return the body of a GET request; a redirection to another host is followed without the token.

        Raises
        ------
        NotThere
            If the daemon answered 404.
        DaemonUnreachable
            If there was no answer, another error, a part of an answer or more than 256 MiB; or the URL, the
            token or the certificates cannot be used.
        """
        if self.token and not (self.token.isascii() and self.token.isprintable()):
            raise DaemonUnreachable("expected a token of printable ASCII characters on one line (not shown)")
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        url = f"{self.base}{path}"
        needs_context = self.ca_file is not None or url.startswith("https://")
        secure = urllib.request.HTTPSHandler(context=self._trusted() if needs_context else None)
        opener = urllib.request.build_opener(secure, _Redirects)
        try:
            request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http or https, see above
            with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                body: bytes = answer.read(_MOST_BYTES + 1)
                left = answer.length
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == NOT_FOUND:
                raise NotThere(f"{url}: answered 404 {error.reason}") from None
            asked = " (it asks for a token: --token-file)" if error.code == UNAUTHORIZED else ""
            raise DaemonUnreachable(f"{url}: answered {error.code} {error.reason}{asked}") from None
        except (OSError, ValueError, HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, ConnectionRefusedError):
                reason = "nothing listens there: is the daemon running, and is this its http.listen?"
            if isinstance(error, HTTPException):
                reason = f"not an answer of streamwatch: {str(error).strip() or type(error).__name__}"
            raise DaemonUnreachable(f"{url}: {reason}") from None
        if len(body) > _MOST_BYTES:
            raise DaemonUnreachable(f"{url}: answered more than {_MOST_BYTES:,} bytes")
        if left:  # `read` with a limit does not raise for it
            raise DaemonUnreachable(f"{url}: the answer broke off after {len(body):,} bytes")
        return body

    @property
    def base(self) -> str:
        """URL without slashes at its end; raises DaemonUnreachable if it is none of HTTP, or names a user."""
        base = self.url.rstrip("/")
        if "@" in base.partition("//")[2].partition("/")[0]:
            raise DaemonUnreachable(
                "expected a URL without user and password, such as http://127.0.0.1:9877 (not shown); "
                "a token is given in a file: --token-file"
            )
        try:
            parts = urllib.parse.urlsplit(base)
            usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise DaemonUnreachable(f"expected a URL such as http://127.0.0.1:9877, got {self.url!r}")
        return base

    def _trusted(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise DaemonUnreachable(f"--ca-file: {self.ca_file} cannot be read: {error}") from None


def model_path(model: str) -> str:
    """Path of a model in the API."""
    return f"/api/v1/models/{path_segment(model)}"


def of_models(address: Address, models: Iterable[str], below: str = "") -> dict[str, dict[str, Any]]:
    """Return what the API has of some models, at `below` their paths, without those that are gone by now.

    A daemon drops a model that is idle, or reset, at any moment after it was listed.

    Raises
    ------
    DaemonUnreachable
        As `answer`.
    """
    found: dict[str, dict[str, Any]] = {}
    for model in models:
        with suppress(NotThere):
            found[model] = answer(address, f"{model_path(model)}{below}")
    return found


def path_segment(name: str) -> str:
    """Escape a name as a segment of a URL's path.

    The names `.` and `..` are escaped twice, as clients remove such segments from paths.
    """
    return name.replace(".", "%252E") if name in {".", ".."} else urllib.parse.quote(name, safe="")


@contextmanager
def understood(address: Address) -> Generator[None]:
    """Raise DaemonUnreachable where the block finds that answers lack contents, or have others."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DaemonUnreachable(
            f"{address.url}: not an answer of streamwatch {__version__}: expected other contents "
            f"({type(error).__name__}: {error})"
        ) from error


def answer(address: Address, path: str) -> dict[str, Any]:
    """Return the JSON object at a path.

    Raises
    ------
    DaemonUnreachable
        As `Address.get`, or if the answer is not a JSON object.
    """
    try:
        found = json.loads(address.get(path))
    except (ValueError, RecursionError) as error:
        raise DaemonUnreachable(f"{address.url}{path}: not an answer of streamwatch: {error}") from None
    if not isinstance(found, dict):
        raise DaemonUnreachable(f"{address.url}{path}: not an answer of streamwatch: expected an object")
    return found
