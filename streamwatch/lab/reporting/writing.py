"""A report as one HTML file that needs nothing else, or as Markdown with its pictures beside it."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from streamwatch.lab.reporting.blocks import Block, Grid, Heading, Listing, Page, Picture, Text

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
pre { overflow-x: auto; padding: .6rem; border: 1px solid #767676; }
@media (prefers-color-scheme: dark) { body { color: #ececec; background: #141414; } }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html(page: Page) -> str:
    """The page as one file: style and pictures are in it, nothing is loaded, no script runs."""
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
            *(_html(block, number) for number, block in enumerate(page.blocks)),
            "</main></body></html>\n",
        ]
    )


def _html(block: Block, number: int) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Text(text):
            return f"<p>{escape(text)}</p>"
        case Picture(_, says, png):
            data = b64encode(png).decode("ascii")
            return f'<p><img src="data:image/png;base64,{data}" alt="{escape(says)}"></p>'
        case Listing(title, text):
            # What scrolls must be reached by the keyboard, and then says what it is.
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
    """The page as Markdown, and its pictures by file name, which it looks for in a folder."""
    pictures = {f"{block.name}.png": block.png for block in page.blocks if isinstance(block, Picture)}
    parts = [f"# {_plain(page.title)}", *(_markdown(block, folder) for block in page.blocks)]
    return "\n\n".join(parts) + "\n", pictures


def _markdown(block: Block, folder: str) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_plain(text)}"
        case Text(text):
            return _plain(text)
        case Picture(name, says, _):
            return f"![{_plain(says)}]({folder}/{name}.png)"
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
    """Text that Markdown leaves as it is: names come from records."""
    for mark in "\\`*_{}[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
