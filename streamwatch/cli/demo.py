"""`streamwatch demo`: see it catch a drift, with nothing installed beside it."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from typing import Annotated

import typer

from streamwatch.cli.options import refuse


def demo(
    *,
    port: Annotated[int, typer.Option("--port", "-p", help="Port of the page and /metrics.")] = 9877,
    host: Annotated[str, typer.Option(help="Address to serve on.")] = "127.0.0.1",
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="End by itself; until Ctrl-C if absent.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Equal seeds give equal streams.")] = 1,
) -> None:
    """Watch three models, one of them being ruined by a drift, without Kafka or any set-up.

    A broker inside this process, a simulated stream, and the daemon of "streamwatch run" in between:

        streamwatch demo

    For a minute, on another port:

        streamwatch demo --seconds 60 --port 9900

    Needs the extra named demo, that is the package confluent-kafka.
    """
    import asyncio

    from rich.console import Console

    from streamwatch.assembly.build import REFUSALS, build_from_document
    from streamwatch.lab.demo import DemoSpec, run_demo
    from streamwatch.lab.embedded import EmbeddedBrokerMissingError

    spec = DemoSpec(host=host, port=port, seconds=seconds, open_browser=browser, seed=seed)
    try:
        asyncio.run(run_demo(spec, build_from_document, Console()))
    except (*REFUSALS, EmbeddedBrokerMissingError) as error:
        refuse(str(error))
