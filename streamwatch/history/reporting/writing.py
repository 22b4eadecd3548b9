"""Parts of a report, and their writing as one self-contained HTML file or as Markdown with pictures."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from io import BytesIO
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.specs import HEADLINE
from streamwatch.edge.extras import command_for
from streamwatch.history.reporting.sources import Document, ReportError


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading of the blocks up to the next heading of its level."""

    level: int
    """Level, 2 or 3; the page's title has level 1."""
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """One paragraph."""

    text: str
    answers: bool = False
    """Whether it is the answer of the report, which is shown larger."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Table whose first column names the row."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Picture as PNG."""

    name: str
    """Name of its file without the suffix, of letters, digits and hyphens."""
    alternative: str
    """Text for readers who do not see the picture."""
    png: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """Preformatted text, such as settings."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that are hidden until the reader opens them."""

    title: str
    blocks: tuple[Grid | Text | Listing, ...]


Block: TypeAlias = Heading | Text | Grid | Picture | Listing | Fold


@dataclass(frozen=True, slots=True)
class Page:
    """Report as a title and blocks."""

    title: str
    blocks: tuple[Block, ...]


# Writing of a report as one self-contained HTML file, or as Markdown with separate pictures.


_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 70rem; font: 1rem/1.5 system-ui, sans-serif;
       color: #1b1b1b; background: #ffffff; }
h1, h2, h3 { line-height: 1.2; }
h1, h2, h3, p { overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #767676; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #b0b0b0; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; background: #ffffff; }
summary { cursor: pointer; margin-top: 1.5rem; font-weight: 600; overflow-wrap: anywhere; }
.answer { font-size: 1.2rem; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid #767676; }
@media (prefers-color-scheme: dark) { body { color: #ececec; background: #141414; } }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html(page: Page) -> str:
    """Write a page as one HTML file with style and pictures, without scripts and external resources."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(page.title)}</title>",
            f"<style>{_STYLE}</style></head>",
            "<body><main>",
            f"<h1>{escape(page.title)}</h1>",
            *(_html(block, str(number)) for number, block in enumerate(page.blocks)),
            "</main></body></html>\n",
        ]
    )


def _html(block: Block, number: str) -> str:
    match block:
        case Fold(title, blocks):
            inner = "\n".join(_html(each, f"{number}-{index}") for index, each in enumerate(blocks))
            return f"<details><summary>{escape(title)}</summary>\n{inner}\n</details>"
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Text(text, answers):
            return f"<p{' class=answer' if answers else ''}>{escape(text)}</p>"
        case Picture(_, alternative, png):
            data = b64encode(png).decode("ascii")
            return f'<p><img src="data:image/png;base64,{data}" alt="{escape(alternative)}"></p>'
        case Listing(title, text):
            # A scrolling area must be reachable by keyboard, and needs a name.
            return f'<pre tabindex="0" role="group" aria-label="{escape(title)}">{escape(text)}</pre>'
        case Grid(title, headings, rows):
            head = "".join(f'<th scope="col">{escape(each)}</th>' for each in headings)
            body = "".join(
                f'<tr><th scope="row">{escape(row[0])}</th>'
                + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
                + "</tr>"
                for row in rows
            )
            named = f'tabindex="0" role="group" aria-labelledby="t{number}"'
            return (
                f'<div class="scroll" {named}><table><caption id="t{number}">{escape(title)}</caption>'
                f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
            )


def markdown(page: Page, folder: str) -> tuple[str, dict[str, bytes]]:
    """Write a page as Markdown; return it with its pictures by file name, to which it links in `folder`."""
    pictures = {f"{block.name}.png": block.png for block in page.blocks if isinstance(block, Picture)}
    parts = [f"# {_plain(page.title)}", *(_markdown(block, folder) for block in page.blocks)]
    return "\n\n".join(parts) + "\n", pictures


def _markdown(block: Block, folder: str) -> str:
    match block:
        case Fold(title, blocks):
            inner = "\n\n".join(_markdown(each, folder) for each in blocks)
            return f"<details>\n<summary>{escape(title)}</summary>\n\n{inner}\n\n</details>"
        case Heading(level, text):
            return f"{'#' * level} {_plain(text)}"
        case Text(text):
            return _plain(text)
        case Picture(name, alternative, _):
            return f"![{_plain(alternative)}]({quote(f'{folder}/{name}.png')})"
        case Listing(_, text):
            fence = "```"
            while fence in text:
                fence += "`"
            return f"{fence}\n{text.rstrip()}\n{fence}"
        case Grid(title, headings, rows):
            right = "".join("---:|" for _ in headings[1:])
            lines = [f"**{_plain(title)}**", "", _row(headings), f"|---|{right}"]
            return "\n".join([*lines, *map(_row, rows)])


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """Escape text for Markdown, as names come from records."""
    for mark in "\\`*_{}[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


# Pictures of a report, by matplotlib (the extra `lab`).


BLUE, GREY, RED, GREEN, PURPLE = "#1f77b4", "#666666", "#c02020", "#207020", "#7a4fa0"
MOST_ALARMS: Final = 60
"""Most alarms that are drawn: the newest ones."""


def curves(
    model: str, history: Document, alarms: Sequence[Document], no_change: str = HEADLINE
) -> Picture | None:
    """Draw accuracy with its bounds beside the baselines, and the lead over the previous label with limits.

    None without two points to draw. `no_change` is the baseline that verdicts call no change; by cohorts it
    is another one than the previous label.

    Raises
    ------
    ReportError
        If matplotlib is not installed.
    """
    series, forgetting = history["series"], history["forgetting"]
    at = _column(series.get("outcomes_total"))
    if len(at) < 2:
        return None
    canvas = _canvas(5.2)
    upper, lower = canvas.subplots(2, 1, sharex=True)
    bounds = series.get("accuracy_bound_ratio", {})
    limits = [_column(_under(tree, forgetting)) for _, tree in sorted(bounds.items())]
    if len(limits) == 2 and all(map(len, limits)):
        low, high = np.fmin(*limits), np.fmax(*limits)
        upper.fill_between(at, low, high, color=BLUE, alpha=0.2, linewidth=0, label="bounds")
    _line(upper, at, _under(series.get("accuracy_ratio"), forgetting), f"accuracy, {forgetting}", BLUE)
    baselines = series.get("baseline_accuracy_ratio", {})
    _line(upper, at, _under(baselines.get(no_change), forgetting), "no change", RED)
    _line(upper, at, _under(baselines.get("majority"), forgetting), "always the majority", GREEN)
    upper.set_ylabel("accuracy")
    below, above = (_column(_one(series.get(name))) for name in ("lead_lower", "lead_upper"))
    if len(below) and len(above):
        lower.fill_between(at, below, above, color=PURPLE, alpha=0.2, linewidth=0, label="its limits")
    over = "no change" if no_change == HEADLINE else "the previous label"
    _line(lower, at, _one(series.get("lead")), f"lead over {over}", PURPLE)
    lower.axhline(0.0, color=GREY, linewidth=0.8, linestyle="--")
    lower.set_ylabel("lead")
    lower.set_xlabel("outcomes")
    drawn = [alarm for alarm in alarms if at[0] <= alarm["outcome"] <= at[-1]][:MOST_ALARMS]
    for number, alarm in enumerate(drawn):
        for axes in (upper, lower):
            axes.axvline(
                alarm["outcome"],
                color=GREY,
                linewidth=0.9,
                linestyle=":",
                label="alarm" if axes is upper and not number else None,
            )
    for axes in (upper, lower):
        axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8, loc="best")
    marked = "1 alarm" if len(drawn) == 1 else f"{len(drawn)} alarms"
    caption = f"{model}: accuracy and lead over {over} by outcome, {marked} marked"
    return _picture(canvas, f"curves-{slug(model)}", caption)


def reliability(model: str, probabilities: Document) -> Picture | None:
    """Draw the share of right predictions by the score that the model gave them; None without outcomes."""
    bins = [
        each for each in probabilities["reliability"] if each["outcomes"] and each["hit_share"] is not None
    ]
    if not bins:
        return None
    canvas = _canvas(3.6, width=4.6)
    axes = canvas.subplots()
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.8)
    axes.plot(
        [each["mean_score"] for each in bins],
        [each["hit_share"] for each in bins],
        color=BLUE,
        marker="o",
        markersize=4,
    )
    axes.set_xlabel("score of the predicted class")
    axes.set_ylabel("share that was right")
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    return _picture(
        canvas,
        f"reliability-{slug(model)}",
        f"{model}: share right by score; on the diagonal a score is true",
    )


def slug(name: str) -> str:
    """Convert a name to letters, digits and hyphens, for a file name; different names stay different."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "model"
    return plain if plain == name else f"{plain[:60]}-{sha256(name.encode()).hexdigest()[:16]}"


def figure_class() -> Any:
    """Return matplotlib's `Figure`; a report calls it before the evaluation, to fail early.

    Raises
    ------
    ReportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ReportError(
            f"pictures are drawn by matplotlib, which is not installed: {command_for('lab')}"
        ) from error
    return Figure


def _canvas(height: float, width: float = 9.0) -> Any:
    return figure_class()(figsize=(width, height), layout="constrained")


def _picture(canvas: Any, name: str, alternative: str) -> Picture:
    written = BytesIO()
    canvas.savefig(written, format="png", dpi=96, metadata={"Software": None})
    return Picture(name, alternative, written.getvalue())


def _line(axes: Any, at: NDArray[np.float64], values: object, label: str, colour: str) -> None:
    found = _column(values)
    if len(found):
        axes.plot(at, found, label=label, color=colour, linewidth=1.3)


def _column(values: object) -> NDArray[np.float64]:
    """Convert the values of a series to an array, NaN where undefined; empty without a series."""
    if not isinstance(values, list):
        return np.empty(0)
    given: list[Any] = values  # pyright: ignore[reportUnknownVariableType]
    return np.array([value if isinstance(value, int | float) else np.nan for value in given], np.float64)


def _under(tree: object, key: str) -> object:
    """Return a series under a forgetting, or the series itself if it has no forgettings."""
    if isinstance(tree, list):
        return tree  # pyright: ignore[reportUnknownVariableType]
    return tree.get(key) if isinstance(tree, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _one(tree: object) -> object:
    """Return the first branch of a series by opponent."""
    return next(iter(tree.values()), None) if isinstance(tree, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
