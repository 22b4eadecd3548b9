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
            "--moa",
            metavar="FOLDER",
            help="Folder with MOA's jar files, to score its detectors as well (requires Java 11).",
        ),
    ] = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Score detectors where changes are known: true, false and missed alarms, and delays.

    Score all detectors at their defaults on steps, ramps, correlated losses
    and stale models of the testbed; then plot delay against false alarms over
    a range of thresholds:

        streamwatch lab detectors --figures pictures

    river's detectors are scored as well if river is installed, and MOA's with
    --moa.
    """
    from streamwatch.lab.experiments.detection.experiment import KIND
    from streamwatch.lab.experiments.moa_runs import MoaError

    try:
        show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, moa=moa)
    except MoaError as error:
        refuse(f"--moa: {error}")
