"""Texts in records that hold more: JSON in a string, CSV, either in base64."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from streamwatch.edge.decoders.texts import TextRule, Texts, Written
from streamwatch.inspection.columns import FlatRecord

USUAL: Final = 0.5
"""Share of a topic's records that must have such a text at a location."""
SURE: Final = 0.98
"""Share of the texts there that must be written so."""
LOOKED_AT: Final = 200
"""First texts of a location that are looked at."""
MAX_RULES: Final = 8
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}", re.ASCII)
_NUMBER: Final = re.compile(r"\s*-?\d+(\.\d+)?([eE][+-]?\d{1,3})?\s*", re.ASCII)


def text_rules(records: Sequence[FlatRecord]) -> tuple[TextRule, ...]:
    """Find the locations of texts that hold more, and how they are written."""
    readable = [record for record in records if not record.fault]
    texts: defaultdict[str, list[str]] = defaultdict(list)
    is_csv_beside: defaultdict[str, bool] = defaultdict(bool)
    for record in readable:
        for location, content in record.scalars.items():
            if isinstance(content, str) and location.startswith("value") and "[1]" not in location:
                texts[location].append(content)
                is_csv_beside[location] |= _has_csv_beside(record, location)
    rules: list[TextRule] = []
    for location, found in texts.items():
        if len(found) > USUAL * len(readable) and len(rules) < MAX_RULES:
            written = _written(
                found[:LOOKED_AT], is_csv=is_csv_beside[location], is_whole=location == "value"
            )
            if written:
                rules.append(TextRule(location, written))
    return tuple(rules)


def _has_csv_beside(record: FlatRecord, location: str) -> bool:
    """Tell whether a field beside a text says that it is CSV."""
    head = location.rpartition(".")[0]
    return any(
        isinstance(content, str) and "csv" in content.casefold()
        for name, content in record.scalars.items()
        if head and name.rpartition(".")[0] == head and name != location
    )


def _written(texts: Sequence[str], *, is_csv: bool, is_whole: bool) -> tuple[Written, ...]:
    """How texts are written, outside first; empty if they hold nothing but themselves."""
    if _most(text.lstrip()[:1] in "{[" and _is_tree(text, ("json",)) for text in texts):
        return ("json",)
    if _most(len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None for text in texts):
        if _most(_is_tree(text, ("base64", "json")) for text in texts):
            return ("base64", "json")
        inner = [_content(text, ("base64",)) for text in texts]
        if all(isinstance(each, str) and _is_row(each) for each in inner):
            return ("base64", "csv")
    if (is_csv and _most(map(_is_row, texts))) or (is_whole and _are_rows(texts, ",")):
        return ("csv",)
    return ("tsv",) if is_whole and _are_rows(texts, "\t") else ()


def _most(found: Any) -> bool:
    flags = list(found)
    return sum(flags) >= SURE * len(flags)


def _content(text: str, written: tuple[Written, ...]) -> Any:
    try:
        return Texts([TextRule("value", written)]).read(text)
    except ValueError:
        return None


def _is_tree(text: str, written: tuple[Written, ...]) -> bool:
    return isinstance(_content(text, written), dict | list)


def _is_row(text: str) -> bool:
    """Tell whether a text is numbers with commas between, or one."""
    cells = [cell for line in text.strip().splitlines() for cell in line.split(",")]
    return bool(cells) and sum(_NUMBER.fullmatch(cell) is not None for cell in cells) * 2 >= len(cells)


def _are_rows(texts: Sequence[str], sign: str) -> bool:
    """Tell whether texts are single lines of as many cells each, two at least."""
    counts = {text.count(sign) for text in texts}
    return len(counts) == 1 and min(counts) > 0 and not any("\n" in text.strip() for text in texts)
