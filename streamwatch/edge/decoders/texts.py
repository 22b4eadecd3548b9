"""Parses texts inside a value: JSON in a string, cells of CSV, either of them in base64.

A rule names the path of a text, and its encodings, the outermost first: `[base64, json]`. Paths of the
mapping then continue into the parsed text: `value.response.score`, where `value.response` is a string of
JSON. CSV becomes rows of cells: `value.data[0][1]` is the second cell of the first row. A cell with a number
becomes a number (`1.0` is the class `1`), an empty one becomes null. Content that is no text is kept.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.mapping import InArray, InValue, Named, Step, parse_field_location

Encoding: TypeAlias = Literal["json", "csv", "tsv", "base64"]
"""Encoding of a text."""


@dataclass(frozen=True, slots=True)
class TextRule:
    """Path of texts, and their encodings, the outermost first."""

    path: str
    encodings: tuple[Encoding, ...]


def _from_json(text: str) -> Any:
    return msgspec.json.decode(text)


def _from_base64(text: str) -> str:
    return base64.b64decode("".join(text.split()), validate=True).decode()


def _rows(text: str, delimiter: str) -> list[list[Any]]:
    return [list(map(_cell, row)) for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]


def _cell(text: str) -> Any:
    """Return the number in a cell, or else its text; None for an empty cell."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text or None


_NUMBER: Final = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,25})?", re.ASCII)
"""Cells that become numbers; not `1e5` and `007`, which may be ids. A score may be such a text."""
_READERS: Final[Mapping[Encoding, Callable[[str], Any]]] = {
    "json": _from_json,
    "csv": lambda text: _rows(text, ","),
    "tsv": lambda text: _rows(text, "\t"),
    "base64": _from_base64,
}
_REFUSED: Final = (
    msgspec.DecodeError,
    UnicodeError,
    binascii.Error,
    csv.Error,
    RecursionError,
)
_EACH: Final = None


class Texts:
    """Parses the texts inside one topic's values.

    Parameters
    ----------
    rules
        Paths of the texts, and their encodings.

    Raises
    ------
    ValueError
        A path does not begin with `value`, or has `*`.
    """

    def __init__(self, rules: Sequence[TextRule]) -> None:
        self._rules = [(steps_to(rule.path), rule.encodings) for rule in rules]

    def read(self, tree: Any) -> Any:
        """Replace the texts in a tree by their parsed contents.

        Raises
        ------
        ValueError
            A text is not in its encoding. Other texts of the tree may have been replaced.
        """
        try:
            for steps, encodings in self._rules:
                tree = _replaced(tree, steps, encodings)
        except _REFUSED as error:
            raise ValueError(str(error)) from None
        return tree


def steps_to(path: str) -> tuple[Step | None, ...]:
    """Parse a path in the value to its steps; None is the step to each element of an array.

    Raises
    ------
    ValueError
        The path does not begin with `value`, or has `*`.
    """
    match parse_field_location(path):
        case InValue(steps) | InArray(steps, None):
            return steps
        case InArray(steps, each):
            return (*steps, _EACH, *(each or ()))
        case _:
            raise ValueError(f"decode: expected a path in the value, such as value.response, got {path!r}")


def _replaced(here: Any, steps: Sequence[Step | None], encodings: Sequence[Encoding]) -> Any:
    """Replace the texts at the end of a path in `here`; returns `here`, or its parsed content."""
    if not steps:
        return _parsed(here, encodings)
    step, *rest = steps
    if isinstance(step, str):
        if isinstance(here, dict) and step in here:
            here[step] = _replaced(here[step], rest, encodings)
    elif isinstance(here, list):
        array = cast("list[Any]", here)
        chosen = index_named(array, step) if isinstance(step, Named) else step
        for at, content in enumerate(array):
            if step is _EACH or at == chosen:
                array[at] = _replaced(content, rest, encodings)
    return cast("Any", here)


def index_named(array: Sequence[Any], named: Named) -> int | None:
    """Return the index of the first object whose field has the text that is named; None without one."""
    for at, each in enumerate(array):
        if isinstance(each, dict) and canonical_text(cast("Any", each).get(named.field)) == named.text:
            return at
    return None


def _parsed(content: Any, encodings: Sequence[Encoding]) -> Any:
    """Parse a text by its encodings; any other content is returned as it is."""
    for encoding in encodings:
        if not isinstance(content, str):
            break
        content = _READERS[encoding](content)
    return content
