"""Seldon Core's v1 protocol: a row per instance in `data.ndarray` or `data.tensor`, `data.names` above them.

Paths begin with `value.id` (the logger's request id, or `meta.puid`), `value.model`, `value.rows` (an element
for each instance, as sent), `value.columns` (each row as an object of column → number), `value.predictions`
(the single value of each row, where all have one), `value.names` or `value.meta`. Columns without a name are
called by their number. By default the class of a row is the column with the largest number, and its id is
`<id>#<index>`. A request without its response is skipped.

Source: Seldon Core documentation, "Seldon Protocol" (SeldonMessage) and "Payload Logging".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, cast

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes.cloudevents import first_text, logged
from streamwatch.edge.decoders.envelopes.kind import EnvelopeKind, UnwrappedRecord
from streamwatch.edge.decoders.envelopes.kserve_v2 import elements
from streamwatch.edge.decoders.mapping import ClassOfLargest


def open_message(tree: Any, record: Record) -> UnwrappedRecord | str | None:
    """Open one response; None for a request alone."""
    found = logged(tree, record)
    if isinstance(found, str):
        return found
    if not found.response:
        return None if found.request else "not_in_envelope"
    data, meta = _object(found.response.get("data")), _object(found.response.get("meta"))
    rows = _rows(data)
    if rows is None:
        return "not_in_envelope"
    names, attributes = data.get("names"), found.attributes
    return UnwrappedRecord(
        {
            "id": first_text(
                attributes.get("requestid"), meta.get("puid"), attributes.get("id"), found.response.get("id")
            ),
            "model": first_text(
                attributes.get("inferenceservicename"), attributes.get("modelid"), attributes.get("model")
            ),
            "rows": rows,
            "columns": _columns(rows, cast("list[Any]", names) if isinstance(names, list) else []),
            "predictions": _singles(rows),
            "names": names,
            "meta": meta,
            "event": attributes,
        }
    )


def _object(found: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _rows(data: dict[str, Any]) -> list[Any] | None:
    if "ndarray" in data:
        return data["ndarray"] if isinstance(data["ndarray"], list) else None
    tensor = _object(data.get("tensor"))
    return elements(tensor.get("shape"), tensor.get("values"))


def _columns(rows: list[Any], names: list[Any]) -> list[dict[str, Any]] | None:
    """Rows as objects of name → value.

    None unless names are texts that differ from each other, and each row has a value for each name.
    """
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    objects: list[dict[str, Any]] = []
    for row in rows:
        if not isinstance(row, list):
            return None
        values = cast("list[Any]", row)
        named = names or list(map(str, range(len(values))))
        if len(named) != len(values):
            return None
        objects.append(dict(zip(named, values, strict=True)))
    return objects


def _singles(rows: list[Any]) -> list[Any] | None:
    """The single value of each row; None unless every row has one value."""
    singles = [row[0] if isinstance(row, list) and len(cast("list[Any]", row)) == 1 else row for row in rows]
    return None if any(isinstance(each, list) for each in singles) else singles


KIND = EnvelopeKind(
    "seldon",
    open_message,
    MappingProxyType({"prediction": ClassOfLargest("value.columns[]"), "scores": None}),
)
