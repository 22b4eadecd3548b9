"""The API of a running daemon, as commands ask it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = 20.0
UNAUTHORIZED, NOT_FOUND = 401, 404


class DaemonUnreachable(Exception):  # noqa: N818 - it names what is the case
    """No daemon answered, or not as one."""


class NotThere(DaemonUnreachable):
    """A daemon answered, and has nothing at this path."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a daemon, with the token it asks for and the file of certificates to trust."""

    url: str
    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def get(self, path: str) -> bytes:
        """Ask for what is at one path.

        Raises
        ------
        DaemonUnreachable
            Nobody answered, or with an error; `NotThere` where there is nothing.
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


def answer(address: Address, path: str) -> dict[str, Any]:
    """Ask for a JSON object; raises DaemonUnreachable, also where it is none."""
    try:
        found = json.loads(address.get(path))
    except ValueError as error:
        raise DaemonUnreachable(f"{address.url}{path}: not an answer of streamwatch: {error}") from None
    if not isinstance(found, dict):
        raise DaemonUnreachable(f"{address.url}{path}: not an answer of streamwatch: expected an object")
    return found
