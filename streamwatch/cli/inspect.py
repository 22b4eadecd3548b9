"""`streamwatch inspect`: proposes settings from samples of topics."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.options import DEFAULT_FILE, ConfigFile, Overrides, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamwatch.assembly.inspection import PlainSamples
    from streamwatch.core.ports import Record
    from streamwatch.settings import Settings

EXIT_UNGUESSED = 1
"""Exit code if something could not be guessed."""


def inspect(  # noqa: PLR0913  # one parameter per option
    context: typer.Context,
    *,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="NAME",
            help="Topic to sample. Repeat it for each topic.",
            show_default=False,
        ),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            "-b",
            metavar="HOST:PORT,…",
            help="Brokers to connect to. With it, ./streamwatch.yaml is read only if -c names it.",
            show_default=False,
        ),
    ] = None,
    schema_registry: Annotated[
        str | None,
        typer.Option(
            "--schema-registry",
            metavar="URL",
            help="Schema registry for Avro and Protocol Buffers records.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="File to sample instead of Kafka: JSON lines, CSV, the output of kcat -J, optionally "
            "gzipped; Parquet; - for stdin. Repeat it for each file.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option("--sample", min=20, max=200_000, help="Maximum number of records to read per topic."),
    ] = 10_000,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            "-w",
            metavar="FILE",
            help="Write the settings to this file. Default: stdout.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --write replace an existing file.")] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
) -> None:
    r"""Propose settings from a sample of your topics: which fields hold ids, predictions and labels.

    Sample one topic with predictions and one with labels, in any order:

        streamwatch inspect -b broker:9092 -t scores -t outcomes \
            --write streamwatch.yaml

    Use brokers that need a password, with their settings in a file:

        streamwatch inspect -c brokers.yaml -t scores -t outcomes

    Read Avro or Protocol Buffers records whose schemas are in a registry:

        streamwatch inspect -b broker:9092 -t scores -t outcomes \
            --schema-registry http://registry:8081

    Sample files instead of Kafka:

        streamwatch inspect --file predictions.jsonl --file labels.jsonl

    It reads the newest records of each topic and some from the last 30 days,
    so that late labels find their predictions. It joins no consumer group,
    commits nothing and writes nothing to Kafka. It shows joined pairs, the
    join rate, label delays, classes, and the ids of both sides that matched
    nothing. Settings go to stdout or to --write, everything else to stderr.

    Next: streamwatch check, then streamwatch run.

    Exit codes: 0 if every field was found, 1 if one was not (the candidates
    are listed), 2 if options or settings must be changed.
    """
    from rich.console import Console

    from streamwatch.assembly.inspection import inspect as guessed
    from streamwatch.assembly.inspection import sampling_settings, sections_written
    from streamwatch.cli.inspection_page import show
    from streamwatch.inspection.words import printable
    from streamwatch.settings import SettingsError

    if bool(topic) == bool(file):
        refuse("expected --topic (with --bootstrap-servers or -c) or --file, one of both")
    origin = context.get_parameter_source("config")  # that of STREAMWATCH_CONFIG is for all commands
    named = origin is not None and origin.name == "COMMANDLINE"
    if file and (bootstrap_servers or schema_registry or overrides or named):
        refuse("--bootstrap-servers, --schema-registry, --config and --set are for --topic, got --file")
    _refuse_existing(write, force=force)
    console = Console(stderr=True, highlight=False, width=None)
    unread, unread_keys, unread_lines = list[str](), list[str](), list[str]()
    partial = False
    try:
        if file:
            samples, unread_lines, where = _of_files(file, sample)
            partial = any(len(records) >= sample for records in samples.values())
            found = guessed(samples, None, where)
        else:
            if config is None and bootstrap_servers is None and DEFAULT_FILE.is_file():
                config = DEFAULT_FILE
            settings = sampling_settings(config, bootstrap_servers, schema_registry, overrides or ())
            plain, where, partial = _of_kafka(topic or [], settings, sample)
            sections = sections_written(settings, registry=bool(plain.formats or plain.key_formats))
            found = guessed(plain.records, sections, where, plain.formats, plain.key_formats)
            unread, unread_keys = plain.problems, plain.notes
    except SettingsError as error:
        refuse(str(error))
    for note in (*unread_lines, *unread_keys):
        typer.secho(printable(note), err=True)
    show(found.guess, found.sample, console, partial=partial)
    for problem in (*unread, *found.problems):
        typer.secho(f"✗ {printable(problem)}", err=True, fg=typer.colors.RED)
    if found.text is not None:
        _put(found.text, write)
    else:
        typer.secho("no settings were written: too much is missing", err=True, fg=typer.colors.RED)
    if unread or found.problems:
        raise typer.Exit(EXIT_UNGUESSED)


def _refuse_existing(write: Path | None, *, force: bool) -> None:
    """Refuse a file that exists, before anything is read."""
    try:
        if write is not None and write.exists() and not force:
            refuse(f"--write: {write} exists; --force replaces it")
    except OSError as error:
        refuse(f"--write: {write} cannot be written: {error.strerror or error}")


def _put(text: str, write: Path | None) -> None:
    if write is None:
        typer.echo(text, nl=False)
        return
    try:
        write.write_text(text, encoding="utf-8")
    except OSError as error:
        refuse(f"--write: {write} cannot be written: {error.strerror or error}")
    typer.secho(f"✓ wrote {write}; next: streamwatch check -c {write}", err=True, fg=typer.colors.GREEN)


def _of_files(files: list[str], most: int) -> tuple[Mapping[str, Sequence[Record]], list[str], str]:
    """Sample files; return the samples, notes on unusable lines, and a description of their origin."""
    from streamwatch.assembly.inspection import read_files
    from streamwatch.history.recordings.file import RecordingError

    try:
        samples, notes = read_files(files, most)
    except RecordingError as error:
        refuse(str(error))
    return samples, notes, f"the last lines of {', '.join(files)}"


def _of_kafka(topics: list[str], settings: Settings, most: int) -> tuple[PlainSamples, str, bool]:
    """Sample the topics with a progress bar.

    Returns the samples, a description of their origin, and whether a topic has records that were not read.
    """
    import asyncio

    from rich.console import Console
    from rich.progress import Progress

    from streamwatch.assembly.inspection import plain_samples
    from streamwatch.assembly.specs import kafka_spec
    from streamwatch.edge.sources.kafka import KafkaUnreachable, ReadDenied, TopicsMissing
    from streamwatch.edge.sources.kafka.checking import sample
    from streamwatch.settings import SettingsError

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sampling", total=most * len(topics))
        try:
            reading = sample(kafka_spec(settings.kafka), topics, most, lambda count: bar.advance(task, count))
            found = asyncio.run(reading)
        except (KafkaUnreachable, TopicsMissing, ReadDenied, SettingsError) as error:
            refuse(str(error))
        except (OSError, ValueError) as error:  # faulty certificates and keys
            refuse(f"kafka.security: {error}")
    read = ", ".join(f"{len(s.records):,} of {s.in_log:,} records of {name}" for name, s in found.items())
    partial = any(len(s.records) < s.in_log for s in found.values())
    return asyncio.run(plain_samples({name: s.records for name, s in found.items()}, settings)), read, partial
