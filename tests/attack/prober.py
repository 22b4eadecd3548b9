"""Asks for health again and again, as a process of its own: what an orchestrator sees during an attack.

Arguments: URLs. A line of JSON per round: for each URL the seconds until the whole answer, or null where
there was none in time. Ends when its standard input does.
"""

from __future__ import annotations

import json
import select
import ssl
import sys
import time
from urllib.request import Request, urlopen

DEADLINE_SECONDS = 20.0
PAUSE_SECONDS = 0.02


def main() -> None:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        print(json.dumps([_asked(url, trusting) for url in sys.argv[1:]]), flush=True)  # noqa: T201


def _asked(url: str, context: ssl.SSLContext) -> float | None:
    began = time.monotonic()
    try:
        with urlopen(  # noqa: S310 - of the test's own
            Request(f"{url}/healthz"),  # noqa: S310
            timeout=DEADLINE_SECONDS,
            context=context if url.startswith("https") else None,
        ) as answer:
            answer.read()
    except OSError:
        return None
    return time.monotonic() - began


if __name__ == "__main__":
    main()
