"""`streamwatch lab classifiers`: classifiers on the testbed."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamwatch.cli.lab.experiment import Figures, Markdown, Reduced, Seed, show
from streamwatch.cli.options import refuse


def classifiers(
    *,
    moa: Annotated[
        Path | None,
        typer.Option(
            "--moa",
            metavar="FOLDER",
            help="Folder with MOA's jar files, to run its classifiers as well (requires Java 11).",
        ),
    ] = None,
    seed: Seed = 1,
    reduced: Reduced = False,
    figures: Figures = None,
    as_markdown: Markdown = False,
) -> None:
    """Run classifiers on the nine streams of the testbed and compare their errors with the paper's.

    Run naive Bayes, a support vector machine trained by gradient descent,
    Dynamic Weighted Majority, bagging with ADWIN, and nearest neighbours in
    windows, prequentially over ten streams of 10,000 instances each (a quarter
    of an hour); with --reduced, over the first 400 instances of three:

        streamwatch lab classifiers --figures pictures

    Requires river. With --moa, MOA's classifiers, which the paper used, run as
    well. Source: Cervantes, Gagné, Isasi, Parizeau, Table 3.
    """
    from streamwatch.lab.experiments.classification.experiment import KIND
    from streamwatch.lab.experiments.classification.river import RiverError
    from streamwatch.lab.experiments.moa_runs import MoaError

    try:
        show(KIND, seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, moa=moa)
    except MoaError as error:
        refuse(f"--moa: {error}")
    except RiverError as error:
        refuse(str(error))
