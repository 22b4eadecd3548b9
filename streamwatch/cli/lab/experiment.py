"""What the commands of experiments share: options, progress, tables and pictures."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.compiling import telling_of_compiling
from streamwatch.cli.options import refuse

if TYPE_CHECKING:
    from rich.console import Console

    from streamwatch.lab.experiments.result import Experiment, Result

Seed = Annotated[
    int,
    typer.Option(
        "--seed", help="Seed of the runs. Another seed changes each number within its error.", min=0
    ),
]
Reduced = Annotated[
    bool, typer.Option("--reduced", help="Take seconds only, with fewer runs and larger errors.")
]
Figures = Annotated[
    Path | None,
    typer.Option(
        "--figures", metavar="FOLDER", help="Write the figures to this folder as PNG (requires matplotlib)."
    ),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")]
Recording = Annotated[
    Path | None,
    typer.Option(
        "--recording",
        metavar="FILE.csv",
        help="CSV with the labels in y_true and a column of predictions per classifier.",
    ),
]


def show(  # one parameter per option
    experiment: Experiment,
    *,
    seed: int,
    reduced: bool,
    figures: Path | None,
    as_markdown: bool,
    recording: Path | None = None,
    moa: Path | None = None,
) -> None:
    """Run an experiment, print its tables and draw its figures."""
    import sys

    from rich.console import Console

    from streamwatch.lab.experiments.drawing import DrawingError, check_drawing
    from streamwatch.lab.experiments.markdown import markdown
    from streamwatch.lab.experiments.recordings import AnswersError
    from streamwatch.lab.experiments.result import Effort

    if figures is not None:
        try:
            check_drawing(figures)
        except DrawingError as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"--figures: {figures} cannot be written: {error.strerror or error}")
    console = Console(stderr=True)
    with telling_of_compiling(), console.status(experiment.title) as status:

        def said(what: str) -> None:
            status.update(what)

        try:
            result = experiment.run(Effort(seed, reduced, recording, said, moa))
        except AnswersError as error:
            refuse(str(error))
    if as_markdown:
        typer.echo("\n".join(markdown(table) for table in result.tables))
    else:
        # A table sent to a file must not lose digits to an assumed width of 80.
        _print(experiment, result, Console() if sys.stdout.isatty() else Console(width=160))
    if figures is not None:
        _draw(result, figures)


def _print(experiment: Experiment, result: Result, console: Console) -> None:
    from rich.table import Table

    from streamwatch.lab.experiments.markdown import text_of

    console.print(f"{experiment.title} ({experiment.source})", style="bold")
    for table in result.tables:
        shown = Table(title=table.title, title_justify="left", box=None, pad_edge=False)
        for index, heading in enumerate(table.headings):
            shown.add_column(heading, justify="right" if index else "left")
        for row in table.rows:
            shown.add_row(*map(text_of, row))
        console.print()
        console.print(shown)
        if table.notes:
            console.print(table.notes, style="dim", highlight=False)


def _draw(result: Result, folder: Path) -> None:
    from streamwatch.lab.experiments.drawing import DrawingError, draw_figure

    for figure in result.figures:
        try:
            typer.echo(f"drawn: {draw_figure(figure, folder)}", err=True)
        except DrawingError as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"--figures: {folder} cannot be written: {error.strerror or error}")
