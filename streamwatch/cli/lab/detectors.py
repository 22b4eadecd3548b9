"""`streamwatch lab detectors`: detectors where changes are known."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show
from streamwatch.cli.options import refuse


def detectors(
    *,
    moa: Annotated[
        Path | None,
        typer.Option(
            "--moa", metavar="FOLDER", help="Folder with MOA's jar files: score its detectors, too (Java 11)."
        ),
    ] = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Score detectors where changes are known: true, false and missed alarms, delays.

    At their defaults on steps, ramps, losses that go together and stale models on the testbed; then ours by
    how strict they are, delay against false alarms:

        streamwatch lab detectors --figures pictures

    river's detectors are scored beside them where river is installed, MOA's with --moa.
    """
    from streamwatch.lab.experiments.detection.experiment import KIND
    from streamwatch.lab.experiments.moa_runs import MoaError

    try:
        show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, moa=moa)
    except MoaError as error:
        refuse(f"--moa: {error}")
