"""`make demo` as a user starts it: it must raise an alarm, and show it, before a deadline.

    python -m tests.demo_check [--seconds 900] [--command "streamwatch demo"]

Starts the demo on a free port, waits until `/metrics` counts an alarm and `/api/v1/alarms` names it,
interrupts the demo as Ctrl-C does, and wants it to leave with 0. Exit code 1 and what the demo said,
otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.ports import free_port

ROOT = Path(__file__).parents[1]
LOOK_SECONDS, STOP_SECONDS = 0.5, 60.0
SERIES = "streamwatch_alarms_total"


def main() -> int:
    """Run the demo until it alarmed; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=900.0, help="longest wait for the alarm")
    parser.add_argument("--command", help="demo of an installation, instead of `make demo`")
    asked = parser.parse_args()
    url = f"http://127.0.0.1:{(port := free_port())}"
    with tempfile.TemporaryFile("w+") as said:
        began = time.monotonic()
        demo = subprocess.Popen(
            [*shlex.split(asked.command), "--port", str(port)]
            if asked.command
            else ["make", "--no-print-directory", "demo", f"ARGS=--port {port}"],
            cwd=ROOT if asked.command is None else tempfile.gettempdir(),
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COLUMNS": "120"},
            start_new_session=True,
        )
        try:
            found = wait_for_alarm(demo, url, began + asked.seconds)
        finally:
            code = stop(demo, by_make=asked.command is None)
        if found and code == 0:
            sys.stdout.write(f"demo: {found} after {time.monotonic() - began:.0f} s\n")
            return 0
        said.seek(0)
        wrong = f"left with {code}" if found else "no alarm was shown"
        sys.stdout.write(f"{said.read()}\ndemo: {wrong} after {time.monotonic() - began:.0f} s\n")
        return 1


def wait_for_alarm(demo: subprocess.Popen[bytes], url: str, deadline: float) -> str:
    """What alarmed, once both /metrics and the API show it; empty when the demo ended or time is up."""
    while demo.poll() is None and time.monotonic() < deadline:
        counted = [
            line
            for line in read(f"{url}/metrics").splitlines()
            if line.startswith(f"{SERIES}{{") and float(line.rpartition(" ")[2]) > 0
        ]
        named = json.loads(read(f"{url}/api/v1/alarms") or "{}").get("alarms") if counted else None
        if named:
            return f"{named[0]['model']} alarmed ({named[0]['detector']})"
        time.sleep(LOOK_SECONDS)
    return ""


def read(url: str) -> str:
    """A page, or nothing while it cannot be had."""
    try:
        with urlopen(url, timeout=10) as answer:  # noqa: S310 - http on loopback
            return answer.read().decode()
    except (URLError, OSError):
        return ""


def stop(demo: subprocess.Popen[bytes], *, by_make: bool) -> int:
    """Interrupt the demo, not make, which then leaves with the demo's exit code."""
    if demo.poll() is None:
        children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
        for process in map(int, children) if by_make else [demo.pid]:
            os.kill(process, signal.SIGINT)
        try:
            demo.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(demo.pid, signal.SIGKILL)
    return demo.wait()


if __name__ == "__main__":
    sys.exit(main())
