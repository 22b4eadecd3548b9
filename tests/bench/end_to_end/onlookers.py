"""What a daemon in production is asked meanwhile: a scrape every 15 s, and one open page.

python -m tests.bench.end_to_end.onlookers ADDRESS      (until standard input ends)
"""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SCRAPE_SECONDS = 15.0
"""As Prometheus does in most installations."""
PAGE_SECONDS = 10.0
"""The page asks again after 0.8 to 12 s, the later the more it was sent; for 50 models about so many."""
TIMEOUT_SECONDS = 30.0


@contextmanager
def onlookers(address: str) -> Iterator[None]:
    """Keep a process that scrapes the daemon at `address` and has its page open."""
    command = [sys.executable, "-m", "tests.bench.end_to_end.onlookers", address]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        try:
            yield
        finally:
            child.communicate()


def ask(url: str) -> None:
    """Read an answer as a browser or Prometheus does; a daemon that has stopped gives none."""
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})  # noqa: S310 - loopback
    with suppress(OSError), urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
        while answer.read(65_536):
            pass


def main() -> None:
    """Ask until standard input ends."""
    address = sys.argv[1].rstrip("/")
    ended = threading.Event()

    def every(seconds: float, path: str) -> None:
        while not ended.wait(seconds):
            ask(address + path)

    threading.Thread(target=ask, args=(f"{address}/api/v1/stream",), daemon=True).start()
    for seconds, path in ((SCRAPE_SECONDS, "/metrics"), (PAGE_SECONDS, "/api/v1/list")):
        threading.Thread(target=every, args=(seconds, path), daemon=True).start()
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    main()
