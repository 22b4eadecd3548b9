"""`streamwatch run`: the daemon."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Annotated, Final

import typer

from streamwatch.cli.options import EXIT_CONFIG, ConfigFile, Overrides, read_settings, refuse

LEAVE_SECONDS: Final = 2.0
"""Time that threads have to end after the daemon has stopped; then the process ends with them."""


def run(
    config: ConfigFile = None,
    overrides: Overrides = None,
    *,
    discard: Annotated[
        bool,
        typer.Option("--discard", help="With state.kind=memory, leave behind the state in state.directory."),
    ] = False,
) -> None:
    r"""Run the daemon: read the topics, evaluate the models and serve the results.

    With the settings in ./streamwatch.yaml:

        streamwatch run

    With another file and one setting overridden:

        streamwatch run -c prod.yaml --set http.listen=0.0.0.0:9877

    Without a file:

        streamwatch run -s kafka.bootstrap_servers=localhost:9092 \
            -s topics.predictions=predictions -s topics.labels=labels

    The daemon serves a status page at /, and /metrics, /api/v1, /docs,
    /healthz and /readyz, by default on http://127.0.0.1:9877. It keeps its
    state in state.directory. SIGTERM or Ctrl-C stops it cleanly, and the next
    start continues where it stopped.

    Settings may be changed while it is stopped: `streamwatch check` shows what
    becomes of the state, and the next start does it and logs it.

    Exit codes: 0 after a clean stop, 2 if settings or topics must be changed
    first, 1 for any other failure.
    """
    settings = read_settings(config, overrides)

    import asyncio
    import gc

    gc.disable()
    from streamwatch.assembly.build import REFUSALS, build_daemon, build_telemetry
    from streamwatch.telemetry import capture_libraries, crash_of

    gc.freeze()  # modules stay as long as the process: no collection while it runs is to look at them
    gc.enable()

    telemetry = build_telemetry(settings)
    capture_libraries(telemetry.emit)  # until the process ends, when unclosed resources are reported
    before, runner = set(threading.enumerate()), asyncio.Runner()
    code, shown = 1, None
    try:
        runner.run(build_daemon(settings, telemetry, discard=discard).run())
        code = 0
    except REFUSALS as error:
        code = EXIT_CONFIG
        refuse(str(error))
    except Exception as error:
        if not telemetry.is_json and not isinstance(error, MemoryError):
            shown = error
            raise
        telemetry.emit(crash_of(error))
        raise typer.Exit(1) from None
    finally:
        _close(runner.close, before, code, shown)


def _close(
    close: Callable[[], None],
    before: Collection[threading.Thread],
    code: int,
    shown: Exception | None,
) -> None:
    """Close the event loop; end the process if its threads do not end within `LEAVE_SECONDS`.

    A thread may be copying a backup, opening a large state, or waiting for a disk that no longer answers. The
    event loop and the interpreter would wait for it without limit. Ending amid its work is no worse than a
    kill, after which the state is that of the last durable commit.

    Parameters
    ----------
    close
        Closes the event loop, and waits for the threads of its executor.
    before
        Threads that are not waited for, as they are older than the daemon.
    code
        Exit code.
    shown
        Exception whose traceback is still to be shown; None without one.
    """
    limit = _limit(code, shown)
    close()
    limit.cancel()
    if any(thread not in before and not thread.daemon for thread in threading.enumerate()):
        _limit(code, None)  # the interpreter waits for these


def _limit(code: int, shown: Exception | None) -> threading.Timer:
    timer = threading.Timer(LEAVE_SECONDS, _end, (code, shown))
    timer.daemon = True
    timer.start()
    return timer


def _end(code: int, shown: Exception | None) -> None:
    with suppress(OSError, ValueError):  # nobody reads them any more
        if shown is not None:
            traceback.print_exception(shown)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
