"""`streamwatch demo`: runs an embedded broker, simulated models and the daemon in one process."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from typing import Annotated

import typer

from streamwatch.cli.options import finite, refuse


def demo(
    *,
    port: Annotated[int, typer.Option("--port", "-p", help="Port of the page and /metrics.")] = 9877,
    host: Annotated[str, typer.Option(help="Address to serve on.")] = "127.0.0.1",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", callback=finite, help="Stop after this many seconds. Default: run until Ctrl-C."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in a browser.")] = False,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the simulation. Equal seeds give equal streams.")
    ] = 1,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Compare the models, too. A first start compiles some seconds longer for it."
        ),
    ] = False,
) -> None:
    """Show streamwatch at work on three simulated models, without Kafka or any set-up.

    Run an embedded broker, a simulated stream and the daemon in one process:

        streamwatch demo

    Run for a minute, on another port:

        streamwatch demo --seconds 60 --port 9900

    After about 15 seconds a drift ruins one model, and another one adapts to
    it. The third stays stable.

    Requires the extra `demo` (the package confluent-kafka).
    """
    import asyncio

    from rich.console import Console

    from streamwatch.assembly.build import REFUSALS, build_from_document
    from streamwatch.demo.demo import DemoSpec, run_demo
    from streamwatch.demo.embedded import EmbeddedBrokerMissingError

    spec = DemoSpec(host=host, port=port, seconds=seconds, open_browser=browser, seed=seed, compare=compare)
    try:
        asyncio.run(run_demo(spec, build_from_document, Console()))
    except (*REFUSALS, EmbeddedBrokerMissingError) as error:
        refuse(str(error))
