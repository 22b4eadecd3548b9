"""`streamwatch run` ends although a thread of the daemon does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

STUCK = """
import sys, threading
import streamwatch.assembly.build as build
import streamwatch.cli.run
from streamwatch.settings import SettingsError
streamwatch_run = sys.modules["streamwatch.cli.run"]
streamwatch_run.LEAVE_SECONDS = 0.2
how, where = sys.argv[1:]
class Daemon:
    async def run(self):
        import asyncio
        stuck = threading.Event().wait
        if where == "executor":
            self.copying = asyncio.ensure_future(asyncio.to_thread(stuck))
            await asyncio.sleep(0)
        else:
            threading.Thread(target=stuck).start()
        if how == "refused":
            raise SettingsError("another topic is needed")
        if how == "crashed":
            raise RuntimeError("a bug")
        print("stopped")
build.build_daemon = lambda *_, **__: Daemon()
topics = ["topics.predictions=p", "topics.labels=l"]
given = ["kafka.bootstrap_servers=127.0.0.1:1", "log.format=pretty", *topics]
import typer
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(lambda: streamwatch_run.run(None, given))
sys.argv[1:] = []
app()
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["executor", "thread"])
@pytest.mark.parametrize(
    ("how", "code", "shown"),
    [
        ("stopped", 0, "stopped"),
        ("refused", 2, "another topic is needed"),
        ("crashed", 1, "RuntimeError: a bug"),
    ],
)
def test_a_thread_that_does_not_end_does_not_keep_the_process(
    how: str, code: int, shown: str, where: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK, how, where], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    assert (done.stdout + done.stderr).count(shown) == 1
