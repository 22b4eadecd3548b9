"""Client of a running daemon's API, for commands."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = 20.0
UNAUTHORIZED, NOT_FOUND = 401, 404


class DaemonUnreachable(Exception):  # noqa: N818 - the name says what happened
    """No streamwatch daemon answered."""


class NotThere(DaemonUnreachable):
    """The daemon answered 404: it has nothing at this path."""


@dataclass(frozen=True, slots=True)
class Address:
    """URL of a daemon, its bearer token if it requires one, and certificates to trust for HTTPS."""

    url: str
    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def get(self, path: str) -> bytes:
        """Return the body of a GET request.

        Raises
        ------
        NotThere
            If the daemon answered 404.
        DaemonUnreachable
            If there was no answer, or another error.
        """
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        url = f"{self.url.rstrip('/')}{path}"
        if not url.startswith(("http://", "https://")):
            raise DaemonUnreachable(f"{self.url}: expected a URL such as http://127.0.0.1:9877")
        context = None
        try:
            if url.startswith("https://"):
                context = ssl.create_default_context(cafile=self.ca_file)
            request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http or https, see above
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=context) as answer:  # noqa: S310
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND:
                raise NotThere(f"{url}: answered 404 {error.reason}") from None
            asked = " (it asks for a token: --token-file)" if error.code == UNAUTHORIZED else ""
            raise DaemonUnreachable(f"{url}: answered {error.code} {error.reason}{asked}") from None
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, ConnectionRefusedError):
                reason = "nothing listens there: is the daemon running, and is this its http.listen?"
            raise DaemonUnreachable(f"{url}: {reason}") from None


def path_segment(name: str) -> str:
    """Escape a name as a segment of a URL's path.

    The names `.` and `..` are escaped twice, as clients remove such segments from paths.
    """
    return name.replace(".", "%252E") if name in {".", ".."} else urllib.parse.quote(name, safe="")


def answer(address: Address, path: str) -> dict[str, Any]:
    """Return the JSON object at a path.

    Raises
    ------
    DaemonUnreachable
        As `Address.get`, or if the answer is not a JSON object.
    """
    try:
        found = json.loads(address.get(path))
    except ValueError as error:
        raise DaemonUnreachable(f"{address.url}{path}: not an answer of streamwatch: {error}") from None
    if not isinstance(found, dict):
        raise DaemonUnreachable(f"{address.url}{path}: not an answer of streamwatch: expected an object")
    return found
