"""`streamwatch lab testbed`: nine streams that drift in known ways."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamwatch.cli.options import refuse

if TYPE_CHECKING:
    from streamwatch.lab.streams.gaussians import Mixture


def write_stream(  # noqa: PLR0913  # one parameter per option
    name: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="Stream to write. Default: describe all nine.")
    ] = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Default: stdout.")
    ] = None,
    layout: Annotated[
        Literal["csv", "jsonl"],
        typer.Option("--format", help="Write rows of outcomes (csv) or events as JSON lines (jsonl)."),
    ] = "csv",
    instances: Annotated[
        int, typer.Option("--instances", "-n", help="Instances to write; 0 for no end.", min=0)
    ] = 10_000,
    lap: Annotated[
        int,
        typer.Option(
            help="Instances in one cycle of changes, which then repeats; fewer make the drifts faster.", min=1
        ),
    ] = 10_000,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the stream. Equal seeds give equal streams.", min=0)
    ] = 1,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers", "-b", help="Write to Kafka instead of a file: brokers as host:port."
        ),
    ] = None,
    predictions: Annotated[str, typer.Option(help="Kafka topic for predictions.")] = "predictions",
    labels: Annotated[str, typer.Option(help="Kafka topic for labels.")] = "labels",
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Create topics that do not exist.")
    ] = False,
) -> None:
    """Write a stream of the testbed with the predictions of its optimal classifier, or list the streams.

    Describe the nine streams and what drifts in each:

        streamwatch lab testbed

    Write attributes and labels for a learner of your own, with the predictions
    of the classifier that no other can beat, and evaluate these:

        streamwatch lab testbed NSGT-I -n 20000 -o nsgt-i.csv
        streamwatch replay nsgt-i.csv

    NSGT-F is NSGT with drifts three times as fast. Write drifts half as fast:

        streamwatch lab testbed NSGT --lap 20000 -n 20000 -o slow.csv

    Write to Kafka, under the default field names, dated as a backlog that ends
    now:

        streamwatch lab testbed NSCX -b localhost:9092 --create-topics

    The streams are those of Cervantes, Gagné, Isasi and Parizeau
    (docs/testbed.md).
    """
    if name is None:
        _cards()
        return

    import sys

    from streamwatch.lab.streams.testbed import named
    from streamwatch.lab.streams.writing import lines

    try:
        kind = named(name)
        mixture = kind.mixture if lap == kind.mixture.lap else kind.mixture.over(lap)
    except ValueError as error:
        refuse(str(error))
    if bootstrap_servers is not None:
        if output is not None or not instances:
            refuse("--bootstrap-servers: expected no --output and at least 1 of --instances")
        topics = (predictions, labels)
        _to_kafka(mixture, instances, seed, bootstrap_servers, topics, 1 if create_topics else None)
        typer.echo(f"{', '.join(topics)}: {instances:,} instances of {kind.name}", err=True)
        return
    written = lines(mixture, layout, instances or None, seed)
    if output is None:
        sys.stdout.writelines(written)
        sys.stdout.flush()
        return
    if not instances:
        refuse("--instances: expected at least 1 for a file, got 0: a stream without end fits in none")
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(written)
    except OSError as error:
        refuse(f"--output: {output} cannot be written: {error.strerror or error}")
    changes = kind.known_changes(instances) if lap == kind.mixture.lap else ()
    said = f"; changes at once at instances {', '.join(f'{at:,}' for at in changes)}" if changes else ""
    typer.echo(f"{output}: {instances:,} instances of {kind.name}{said}", err=True)


def _to_kafka(  # all that is said of where and what
    mixture: Mixture,
    instances: int,
    seed: int,
    servers: str,
    topics: tuple[str, str],
    create: int | None,
) -> None:
    import asyncio

    from streamwatch.lab.streams.to_kafka import Destination, write_to_kafka
    from streamwatch.lab.topics import SimulationError

    try:
        asyncio.run(write_to_kafka(mixture, instances, seed, Destination(servers, *topics, create)))
    except SimulationError as error:
        refuse(str(error))


def _cards() -> None:
    from rich.console import Console
    from rich.table import Table

    from streamwatch.lab.streams.testbed import KINDS

    table = Table(box=None, pad_edge=False, title="Streams of the testbed", title_justify="left")
    for heading in ("stream", "attributes", "what drifts", "asks for", "optimal error\n(paper, %)"):
        table.add_column(heading, justify="right" if "error" in heading else "left")
    for kind in KINDS:
        mixture = kind.mixture
        table.add_row(
            kind.name, str(mixture.dimensions), kind.drifts, kind.asks, f"{kind.printed_optimal:.2f}"
        )
    Console().print(table)
