"""`streamwatch run`: the daemon."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from typing import Annotated

import typer

from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse


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
    try:
        asyncio.run(build_daemon(settings, telemetry, discard=discard).run())
    except REFUSALS as error:
        refuse(str(error))
    except Exception as error:
        if not telemetry.is_json and not isinstance(error, MemoryError):
            raise
        telemetry.emit(crash_of(error))
        raise typer.Exit(1) from None
