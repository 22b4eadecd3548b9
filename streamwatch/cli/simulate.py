"""`streamwatch simulate`: writes simulated predictions and labels to Kafka."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.options import Overrides, finite, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rich.console import Console

    from streamwatch.demo.simulate import SimulationSpec, SimulationSummary
    from streamwatch.edge.sources.kafka import KafkaSpec


def simulate(  # noqa: PLR0913  # one parameter per option
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            "-b",
            metavar="HOST:PORT,…",
            help="Brokers to connect to. Default: localhost:9092.",
            show_default=False,
        ),
    ] = None,
    *,
    predictions: Annotated[str, typer.Option(help="Topic to write predictions to.")] = "predictions",
    labels: Annotated[str, typer.Option(help="Topic to write labels to.")] = "labels",
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="Configuration file, whose section kafka is used. Default: none.",
            envvar="STREAMWATCH_CONFIG",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = None,
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Create topics that do not exist.")
    ] = False,
    partitions: Annotated[int, typer.Option(help="Number of partitions of created topics.", min=1)] = 4,
    models: Annotated[int, typer.Option("--models", "-m", help="Number of models that predict.", min=1)] = 3,
    instances: Annotated[
        int | None,
        typer.Option("--instances", "-n", help="Instances to write. Default: no end.", min=1),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", "-r", callback=finite, help="Instances per second.")
    ] = 100.0,
    flat_out: Annotated[
        bool, typer.Option("--flat-out", help="Write as fast as Kafka accepts, dated as a backlog.")
    ] = False,
    time_scale: Annotated[
        float,
        typer.Option(callback=finite, help="Divide label delays by this: 60 turns minutes into seconds."),
    ] = 1.0,
    delay: Annotated[
        float, typer.Option(callback=finite, help="Median label delay in seconds.", min=0.0)
    ] = 30.0,
    never: Annotated[float, typer.Option(help="Share of labels that never come.", min=0.0, max=1.0)] = 0.03,
    drift_every: Annotated[
        int,
        typer.Option(
            help="Instances between drifts, which are abrupt and gradual in turn; 0 for none.", min=0
        ),
    ] = 5_000,
    scores: Annotated[
        bool, typer.Option("--scores", help="Let predictions carry class probabilities.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the simulation. Equal seeds give equal streams.")
    ] = 1,
) -> None:
    """Write simulated predictions and delayed labels of several models to Kafka, with drifts.

    Write a live stream until Ctrl-C:

        streamwatch simulate -b localhost:9092 --create-topics

    Write a backlog of 100,000 instances at once:

        streamwatch simulate -n 100000 --rate 1000 --flat-out

    Write to brokers that ask for a password or a token, by the section kafka
    of your settings:

        streamwatch simulate -c streamwatch.yaml -n 100000 --flat-out

    One model stays modest but stable, one is ruined by the first drift, and
    one adapts. If streamwatch.yaml names the default topics, "streamwatch run"
    watches these models.
    """
    import asyncio

    from rich.console import Console

    from streamwatch.demo.simulate import SimulationError, SimulationSpec
    from streamwatch.demo.simulated import DelaySpec, StreamSpec

    servers, security = _brokers(config, bootstrap_servers, overrides)
    try:
        spec = SimulationSpec(
            bootstrap_servers=servers,
            predictions_topic=predictions,
            labels_topic=labels,
            stream=StreamSpec(
                seed=seed,
                models=models,
                drift_every=drift_every,
                delay=DelaySpec(median_s=delay, never=never),
            ),
            rate=rate,
            outcomes=instances,
            flat_out=flat_out,
            time_scale=time_scale,
            scores=scores,
            create_topics=create_topics,
            partitions=partitions,
        )
    except ValueError as error:
        refuse(str(error))
    console = Console(stderr=True)
    try:
        summary = asyncio.run(_simulate(spec, security, console))
    except SimulationError as error:
        refuse(str(error))
    for line in summary.lines():
        typer.echo(line)


def _brokers(
    config: Path | None, servers: str | None, overrides: list[str] | None
) -> tuple[str, KafkaSpec | None]:
    """Return the bootstrap servers, and the spec of the connection; None (plain text) without settings.

    Ends the command if these are no addresses, or the settings cannot be used.
    """
    if config is None and not overrides:
        named = servers or "localhost:9092"
        from streamwatch.settings.sections import reachable

        try:
            reachable(tuple(each.strip() for each in named.split(",")))
        except ValueError as error:
            refuse(f"--bootstrap-servers: {error}")
        return named, None
    from streamwatch.assembly.inspection import sampling_settings
    from streamwatch.assembly.specs import kafka_spec
    from streamwatch.settings import SettingsError

    try:
        spec = kafka_spec(sampling_settings(config, servers, None, overrides or ()).kafka)
    except SettingsError as error:
        refuse(str(error))
    return spec.bootstrap_servers, spec


async def _simulate(spec: SimulationSpec, brokers: KafkaSpec | None, console: Console) -> SimulationSummary:
    """Run the simulation until its end or Ctrl-C, after which records are still flushed."""
    import asyncio
    import signal

    from streamwatch.demo.simulate import run_simulation

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    security: Mapping[str, Any] | None = None
    if brokers is not None:
        from streamwatch.edge.sources.kafka import KafkaUnreachable, list_topics
        from streamwatch.edge.sources.kafka.client import security_options

        try:
            await list_topics(brokers)  # its error explains failures of authentication
            security = security_options(brokers)  # tokens are fetched in this loop
        except KafkaUnreachable as error:
            refuse(str(error))
        except (OSError, ValueError) as error:
            refuse(f"kafka.security: {error}")
    return await run_simulation(spec, security=security, stop=stop, console=console)
