"""Results of an experiment: tables of numbers with their Monte-Carlo error, figures and their drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isnan, nan, sqrt
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamwatch.edge.extras import command_for

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measured:
    """Number measured by an experiment."""

    value: float
    """Value; NaN if undefined."""
    error: float = 0.0
    """Standard error over the runs; 0 if the value does not depend on the seed, NaN for a single run."""
    decimals: int = 4

    def text(self) -> str:
        """Format value and standard error."""
        if isnan(self.value):
            return "–"
        value = f"{round(self.value, self.decimals) + 0.0:,.{self.decimals}f}"  # + 0: no −0
        if isnan(self.error):
            return f"{value} ± ?"
        shown = self.error >= 0.5 * 10.0**-self.decimals
        return f"{value} ± {self.error:,.{self.decimals}f}" if shown else value


Cell: TypeAlias = str | Measured


def over_runs(values: ArrayLike, decimals: int = 4) -> Measured:
    """Mean over runs and its standard error; runs without a value (NaN) are left out."""
    found = np.asarray(values, np.float64).ravel()
    found = found[~np.isnan(found)]
    if not len(found):
        return Measured(nan, 0.0, decimals)
    error = float(found.std(ddof=1)) / sqrt(len(found)) if len(found) > 1 else nan
    return Measured(float(found.mean()), error, decimals)


def share(count: int, of: int, decimals: int = 3) -> Measured:
    """Compute count/of over independent runs, with the standard error of its Agresti-Coull estimate.

    This error is positive even if no run, or every run, is counted. NaN if `of` is 0.
    """
    if not of:
        return Measured(nan, 0.0, decimals)
    middle = (count + 2.0) / (of + 4.0)
    return Measured(count / of, sqrt(middle * (1.0 - middle) / (of + 4.0)), decimals)


@dataclass(frozen=True, slots=True)
class Table:
    """Table of numbers, with those of the paper."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: str = ""
    """Differences from the paper and their reasons."""


@dataclass(frozen=True, slots=True)
class Line:
    """Curve or points of a panel."""

    label: str
    x: NDArray[np.floating[Any]]
    y: NDArray[np.floating[Any]]
    dashed: bool = False
    dots: bool = False
    """Whether points are drawn without a line."""
    names: tuple[str, ...] = ()
    """Label of each point; may be empty."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Pair of axes with lines."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    verticals: tuple[float, ...] = ()
    """Positions at which the stream is known to change."""
    horizontals: tuple[float, ...] = ()
    """Levels to compare with."""
    logarithmic: bool = False
    """Whether x is drawn on a logarithmic scale."""
    logarithmic_y: bool = False
    """Whether y is drawn on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Figure of panels below each other."""

    name: str
    """Name of its file, without the suffix."""
    title: str
    panels: tuple[Panel, ...]
    beside: bool = False
    """Whether panels are side by side with equal scales, so that positions can be compared."""


@dataclass(frozen=True, slots=True)
class Result:
    """Tables and figures of an experiment."""

    tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = ()

    def numbers(self) -> dict[str, Measured]:
        """Return every number by table, row and column."""
        return {
            f"{table.title} / {row[0] if isinstance(row[0], str) else i} / {heading}": cell
            for table in self.tables
            for i, row in enumerate(table.rows)
            for heading, cell in zip(table.headings, row, strict=True)
            if isinstance(cell, Measured)
        }


def _unshown(_line: str) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Seed and size of an experiment."""

    seed: int = 1
    reduced: bool = False
    """Whether to take seconds only, for the same tables with larger errors."""
    recording: Path | None = None
    """CSV of labels and predictions, for experiments that evaluate recorded classifiers."""
    progress: Callable[[str], None] = field(default=_unshown)
    """Function that shows a line of progress."""
    moa: Path | None = None
    """Folder with MOA's jar files, for experiments that compare with MOA."""
    data: Path | None = None
    """Folder with data sets, for the benchmark of detectors."""
    seeds: int = 30
    """Number of streams of each kind in that benchmark."""

    def size(self, full: int, reduced: int) -> int:
        """Choose a number of runs or outcomes by `reduced`."""
        return reduced if self.reduced else full

    def rng(self, *names: str | int) -> np.random.Generator:
        """Build the generator of one part of an experiment, independent of other parts."""
        return np.random.default_rng([self.seed, *(crc32(str(name).encode()) for name in names)])

    def runs(self, what: str, full: int, reduced: int) -> Sequence[int]:
        """Return the numbers of the runs; each is shown as progress when it is taken."""
        return _ShownRuns(self.size(full, reduced), what, self.progress)


class _ShownRuns(Sequence[int]):
    """Numbers from 0 on, each shown as progress when it is taken."""

    def __init__(self, count: int, what: str, progress: Callable[[str], None]) -> None:
        self._count, self._what, self._progress = count, what, progress

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int | slice) -> int:  # type: ignore[override]
        if isinstance(index, slice) or index >= self._count:
            raise IndexError(index)
        self._progress(f"{self._what}: {index + 1} of {self._count}")
        return index


@dataclass(frozen=True, slots=True)
class Experiment:
    """Experiment; `catalogue.KINDS` lists all."""

    name: str
    """Name of its command."""
    title: str
    source: str
    """Paper and section."""
    finding: str
    """Result in a sentence or two, for docs/papers.md."""
    run: Callable[[Effort], Result]


# Tables of an experiment as Markdown.


def text_of(cell: Cell) -> str:
    """Format a cell."""
    return cell if isinstance(cell, str) else cell.text()


def markdown(table: Table) -> str:
    """Format a table as Markdown, with its title in bold above and its notes below."""
    right = "".join("---:|" for _ in table.headings[1:])
    lines = [f"**{table.title}**", "", _row(table.headings), f"|---|{right}"]
    lines += [_row(tuple(map(text_of, row))) for row in table.rows]
    if table.notes:
        lines += ["", table.notes]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# Drawing of figures with matplotlib (the extra `lab`).


COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f", "#bcbd22",
    "#000000", "#e377c2",
)  # fmt: skip


class DrawingError(RuntimeError):
    """Figure that cannot be drawn, as matplotlib is not installed; the message says how to install it."""


def check_drawing(folder: Path) -> None:
    """Check, before a long run, that figures can be drawn into a folder; creates the folder.

    Raises
    ------
    DrawingError
        If matplotlib is not installed.
    OSError
        If nothing can be written there.
    """
    _canvas()
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):
        pass


def _canvas() -> Any:
    try:
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise DrawingError(
            f"figures are drawn by matplotlib, which is not installed: {command_for('lab')}"
        ) from error
    return Canvas


def draw_figure(figure: Figure, folder: Path) -> Path:
    """Write a figure as `<name>.png` into a folder, which is created if absent; return the file.

    Raises
    ------
    DrawingError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.
    """
    canvas = drawn(figure)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{figure.name}.png"
    canvas.savefig(path, dpi=90, metadata={"Software": None}, bbox_inches="tight")
    return path


def drawn(figure: Figure) -> Any:
    """Draw a figure; return matplotlib's `Figure`.

    Raises
    ------
    DrawingError
        If matplotlib is not installed.
    """
    made = _canvas()
    count = len(figure.panels)
    if figure.beside:
        canvas = made(figsize=(10.0, 4.2), layout="constrained")
        subplots = canvas.subplots(1, count, squeeze=False, sharex=True, sharey=True)[0]
    else:
        canvas = made(figsize=(10.0, 0.4 + 2.5 * count), layout="constrained")
        subplots = canvas.subplots(count, squeeze=False, sharex=_of_one_scale(figure.panels))[:, 0]
    canvas.suptitle(figure.title, fontsize=10)
    for axes, panel in zip(subplots, figure.panels, strict=True):
        _draw(axes, panel, equal=figure.beside)
    if figure.beside:  # a common legend below
        canvas.legend(
            *subplots[0].get_legend_handles_labels(), loc="outside lower center", fontsize=7, ncols=6
        )
    return canvas


def _of_one_scale(panels: tuple[Panel, ...]) -> bool:
    """Tell whether all panels have the same x axis, so that they can share it."""
    return len({panel.x_label for panel in panels}) == 1 and not any(panel.logarithmic for panel in panels)


def _draw(axes: object, panel: Panel, *, equal: bool) -> None:
    from matplotlib.axes import Axes  # noqa: PLC0415 - an extra

    assert isinstance(axes, Axes)  # noqa: S101 - for the type checker
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x_label, fontsize=8)
    axes.set_ylabel(panel.y_label, fontsize=8)
    axes.tick_params(labelsize=8)
    for at in panel.verticals:
        axes.axvline(at, color="#999999", linewidth=0.8, linestyle=":")
    for level in panel.horizontals:
        axes.axhline(level, color="#999999", linewidth=0.8, linestyle="--")
    for index, line in enumerate(panel.lines):
        style = "--" if line.dashed else "-"
        axes.plot(
            line.x,
            line.y,
            label=line.label,
            color=COLOURS[index % len(COLOURS)],
            linewidth=1.0,
            linestyle="" if line.dots else style,
            marker="o" if line.dots else "",
            markersize=3.0 if equal else 4.0,
        )
        for x, y, name in zip(line.x, line.y, line.names, strict=False):
            axes.annotate(
                name,
                (float(x), float(y)),
                xytext=(3.0, 2.0),
                textcoords="offset points",
                fontsize=6,
                color=COLOURS[index % len(COLOURS)],
            )
    if panel.logarithmic:
        axes.set_xscale("log")
    if panel.logarithmic_y:
        axes.set_yscale("log")
    if equal:
        axes.set_aspect("equal", adjustable="box")
    else:  # beside the axes, where it hides no lines
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
