"""`streamwatch compile`: the estimators, compiled ahead of the first start."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from streamwatch.cli.compiling import telling_of_compiling
from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse

if TYPE_CHECKING:
    from streamwatch.core.estimators.warming import WarmUpResult

_NO_KAFKA = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {"predictions": ["predictions"], "labels": ["labels"]},
}


def compile_estimators(config: ConfigFile = None, overrides: Overrides = None) -> None:
    r"""Compile the estimators ahead of time, so that the next start takes tenths of a second.

    Compile into a container image whose file system will be read-only:

        NUMBA_CACHE_DIR=/opt/streamwatch/kernel NUMBA_CPU_NAME=generic \
            streamwatch compile -c prod.yaml

    The compiled estimators depend on how many of each kind the section
    monitors names, on the processor and on NUMBA_CPU_NAME; the rest serves any
    settings. The command needs neither Kafka nor the state.

    Exit codes: 0 if the result is kept for the next start, 2 if there is no
    place to keep it.
    """
    settings = read_settings(config, overrides, otherwise=_NO_KAFKA)

    from streamwatch.assembly.warming import warm_up_run
    from streamwatch.core.buckets.columns.warming import warm_up_buckets
    from streamwatch.settings import SettingsError

    began = time.monotonic()
    from streamwatch.edge.sources.kafka.batches.plain_batches import compiled_plain_batches
    from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
    from streamwatch.lab.outcome_rows.warming import warm_up_rows

    try:
        with telling_of_compiling() as compiled:
            warmth = warm_up_run(settings, any_state=True)
            warm_up_buckets()
            compiled_scan()  # of what Kafka answers; kept beside the estimators, like the next two
            compiled_plain_batches()
            warm_up_rows()
    except SettingsError as error:
        refuse(str(error))
    warmth = replace(warmth, compiled=compiled())
    said = told(warmth, time.monotonic() - began)
    if warmth.compiled and not kept(warmth):
        refuse(said)
    typer.echo(said)


def kept(warmth: WarmUpResult) -> bool:
    """Tell whether what was compiled now is there for the next start."""
    return warmth.cache_directory is not None and os.access(warmth.cache_directory, os.W_OK)


def told(warmth: WarmUpResult, seconds: float) -> str:
    """Say what became of it, and where it is."""
    where, processor = warmth.cache_directory, os.environ.get("NUMBA_CPU_NAME", "this processor")
    if not warmth.compiled:
        return f"nothing to compile: {warmth.loaded} functions for {processor} are in {where}"
    done = (
        f"compiled {warmth.compiled} functions for {processor} in {seconds:.1f} s, {warmth.loaded} were there"
    )
    if where is None:
        return f"{done}\nnot kept, every start compiles them: set NUMBA_CACHE_DIR to a writable directory"
    if not kept(warmth):
        return f"{done}\nnot kept, every start compiles them: {where} is not writable"
    return f"{done}\nkept in {where}"
