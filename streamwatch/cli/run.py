"""`streamwatch run`: the daemon."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse


def run(config: ConfigFile = None, overrides: Overrides = None) -> None:
    """Watch the models behind your topics until told to stop.

    With ./streamwatch.yaml:

        streamwatch run

    With another file and an override:

        streamwatch run -c prod.yaml --set http.listen=0.0.0.0:9877

    Without a file:

        streamwatch run -s kafka.bootstrap_servers=localhost:9092
            -s topics.predictions=predictions -s topics.labels=labels

    Serves /metrics, /healthz, /readyz, /api/v1 (see /api/v1/openapi.json) and a page at /. State is kept
    in state.directory; SIGTERM or Ctrl-C stops it cleanly, and a start goes on from there.
    Exit code: 0 after a stop, 2 when settings or topics must be changed first, 1 for anything else.
    """
    settings = read_settings(config, overrides)

    import asyncio

    from streamwatch.assembly.build import REFUSALS, build_daemon

    try:
        asyncio.run(build_daemon(settings).run())
    except REFUSALS as error:
        refuse(str(error))
