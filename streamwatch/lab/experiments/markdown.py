"""Tables of an experiment as Markdown."""

from __future__ import annotations

from streamwatch.lab.experiments.result import Cell, Table


def text_of(cell: Cell) -> str:
    """Cell for people."""
    return cell if isinstance(cell, str) else cell.text()


def markdown(table: Table) -> str:
    """One table, its title bold above it and its notes below."""
    right = "".join("---:|" for _ in table.headings[1:])
    lines = [f"**{table.title}**", "", _row(table.headings), f"|---|{right}"]
    lines += [_row(tuple(map(text_of, row))) for row in table.rows]
    if table.notes:
        lines += ["", table.notes]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
