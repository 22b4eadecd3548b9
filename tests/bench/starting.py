"""CPU of `streamwatch run` from its start until it is ready, and until it has ended, with nothing to read.

    python -m tests.bench.starting --repeats 5

Functions are compiled and bytecode is written by a start that is not counted.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.error import URLError
from urllib.request import urlopen

from streamwatch.demo.embedded import EmbeddedBroker
from tests.ports import free_port

_TICK = os.sysconf("SC_CLK_TCK")
_SECONDS = 300.0


def used(pid: int) -> float:
    """CPU of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def one(servers: str, state: str) -> tuple[float, float]:
    """CPU until ready and until the end, in seconds."""
    port = free_port()
    settings = [
        f"kafka.bootstrap_servers={servers}",
        "topics.predictions=predictions",
        "topics.labels=labels",
        f"http.listen=127.0.0.1:{port}",
        state,
    ]
    command = [sys.executable, "-m", "streamwatch", "run"]
    command += [option for each in settings for option in ("--set", each)]
    before = os.times()
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as daemon:
        deadline = time.monotonic() + _SECONDS
        while True:
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the daemon is not ready after {_SECONDS} s, or has ended")
            try:
                with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5.0) as answer:
                    if answer.status == 200:
                        break
            except (URLError, OSError):
                time.sleep(0.02)
        until_ready = used(daemon.pid)
        daemon.send_signal(signal.SIGTERM)
    after = os.times()
    whole = after.children_user + after.children_system - before.children_user - before.children_system
    return until_ready, whole


def main() -> None:
    """Start some times with each kind of state."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=5)
    repeats: int = options.parse_args().repeats
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory() as folder:
        for topic in ("predictions", "labels"):
            broker.create_topic(topic, 2)
        for kind in ("memory", "disk"):
            found: list[tuple[float, float]] = []
            for number in range(repeats + 1):
                state = "state.kind=memory" if kind == "memory" else f"state.directory={folder}/{number}"
                found.append(one(broker.bootstrap_servers, state))
            ready, whole = (median(each[place] for each in found[1:]) for place in (0, 1))
            load = os.getloadavg()[0]
            print(f"{kind}: ready after {ready:.2f} s of CPU, ended after {whole:.2f} (load {load:.1f})")


if __name__ == "__main__":
    main()
