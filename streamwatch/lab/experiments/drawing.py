"""Figures as pictures, by matplotlib (the extra `lab`)."""

from __future__ import annotations

from pathlib import Path

from streamwatch.edge.extras import command_for
from streamwatch.lab.experiments.result import Figure, Panel

COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f", "#bcbd22",
    "#000000", "#e377c2",
)  # fmt: skip


class DrawingError(RuntimeError):
    """There is no matplotlib; the message says how to get it."""


def draw_figure(figure: Figure, folder: Path) -> Path:
    """Write a figure as `<name>.png` into a folder, which is made if absent; gives the file.

    Raises
    ------
    DrawingError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise DrawingError(
            f"figures are drawn by matplotlib, which is not installed: {command_for('lab')}"
        ) from error
    canvas = Canvas(figsize=(8.0, 0.4 + 2.5 * len(figure.panels)), layout="constrained")
    canvas.suptitle(figure.title, fontsize=10)
    for axes, panel in zip(
        canvas.subplots(len(figure.panels), squeeze=False)[:, 0], figure.panels, strict=True
    ):
        _draw(axes, panel)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{figure.name}.png"
    canvas.savefig(path, dpi=90, metadata={"Software": None})
    return path


def _draw(axes: object, panel: Panel) -> None:
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
            markersize=4.0,
        )
    if panel.logarithmic:
        axes.set_xscale("log")
    if panel.logarithmic_y:
        axes.set_yscale("log")
    axes.legend(fontsize=7, loc="best")
