"""Detection of how values are written: envelopes, and texts that contain structured data."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

from streamwatch.edge.decoders.envelopes import KINDS, EnvelopeKind, UnwrappedRecord
from streamwatch.edge.decoders.envelopes.cloudevents import is_event
from streamwatch.edge.decoders.texts import Encoding, TextRule, Texts
from streamwatch.inspection.columns import FlatRecord

USUAL: Final = 0.5
"""Share of a topic's records above which they count as being in an envelope, or having a text somewhere."""


def envelope_of(records: Sequence[FlatRecord]) -> tuple[EnvelopeKind, str] | None:
    """Find the envelope of most records of a topic, and a note on it; None without one."""
    readable = [record for record in records if not record.fault]
    for name, fits, note in _ENVELOPES:
        kind = KINDS[name]
        opened = [kind.open(record.tree, record.record) for record in readable if fits(record)]
        counted = sum(each is None or isinstance(each, UnwrappedRecord) for each in opened)
        if counted > USUAL * len(readable) and any(isinstance(each, UnwrappedRecord) for each in opened):
            return kind, note
    return None


def _is_debezium(record: FlatRecord) -> bool:
    """Return whether a record has Debezium's `op` and `source`."""
    return any(
        f"{head}op" in record.scalars
        and any(location.startswith(f"{head}source.") for location in record.scalars)
        for head in ("value.payload.", "value.")
    )


def _is_event(record: FlatRecord) -> bool:
    return is_event(record.tree, record.record)


def _is_logged(record: FlatRecord) -> bool:
    """Return whether a record is a request or an answer logged by a server."""
    tree = record.tree
    return _is_event(record) or (isinstance(tree, dict) and bool({"request", "response"} & tree.keys()))


def _is_any(record: FlatRecord) -> bool:
    return isinstance(record.tree, dict)


_ENVELOPES: Final[tuple[tuple[str, Callable[[FlatRecord], bool], str], ...]] = (
    ("seldon", _is_any, "Seldon: rows of data; requests are skipped"),
    ("kserve_v2", _is_any, "KServe v2: tensors as arrays with an element for each instance"),
    ("kserve_v1", _is_logged, "KServe v1: instances and predictions; requests are skipped"),
    ("debezium", _is_debezium, "Debezium: rows as they are after a change; deletions withdraw predictions"),
    ("cloudevents", _is_event, "CloudEvents: attributes beside value.data, in structured and binary mode"),
)


# Texts that contain structured data (`decode`): JSON in a string, CSV, TSV, and JSON or CSV in base64.


SURE: Final = 0.98
"""Share of the texts of a location that must have the format."""
LOOKED_AT: Final = 200
"""Most texts of a location that are examined."""
MAX_RULES: Final = 8
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}", re.ASCII)
_NUMBER: Final = re.compile(r"\s*-?\d+(\.\d+)?([eE][+-]?\d{1,3})?\s*", re.ASCII)


def text_rules(records: Sequence[FlatRecord]) -> tuple[TextRule, ...]:
    """Find the locations of texts that contain structured data, and their formats."""
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
    """Return whether a field beside a text contains `csv`, as a content type does."""
    head = location.rpartition(".")[0]
    return any(
        isinstance(content, str) and "csv" in content.casefold()
        for name, content in record.scalars.items()
        if head and name.rpartition(".")[0] == head and name != location
    )


def _written(texts: Sequence[str], *, is_csv: bool, is_whole: bool) -> tuple[Encoding, ...]:
    """Find the formats of texts, the outermost first; empty for plain texts."""
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


def _content(text: str, written: tuple[Encoding, ...]) -> Any:
    try:
        return Texts([TextRule("value", written)]).read(text)
    except ValueError:
        return None


def _is_tree(text: str, written: tuple[Encoding, ...]) -> bool:
    return isinstance(_content(text, written), dict | list)


def _is_row(text: str) -> bool:
    """Return whether at least half of a text's cells, separated by commas, are numbers."""
    cells = [cell for line in text.strip().splitlines() for cell in line.split(",")]
    return bool(cells) and sum(_NUMBER.fullmatch(cell) is not None for cell in cells) * 2 >= len(cells)


def _are_rows(texts: Sequence[str], sign: str) -> bool:
    """Return whether texts are single lines with the same number of cells, at least two."""
    counts = {text.count(sign) for text in texts}
    return len(counts) == 1 and min(counts) > 0 and not any("\n" in text.strip() for text in texts)
