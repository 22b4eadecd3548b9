"""Drawing of figures with matplotlib (the extra `lab`)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from streamwatch.edge.extras import command_for
from streamwatch.papers.result import Figure, Panel

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
