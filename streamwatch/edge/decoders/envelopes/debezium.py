"""Debezium's change events: a row that was inserted, read, changed or deleted in a database.

Paths lead into the row as it is after the change (`value.<column>`), with `value.__op`, `value.__ts_ms` and
`value.__source` added to its columns. Of a delete it is the row before, and a pending prediction is
withdrawn. Changes that concern no row (`t`, truncate; `m`, message) are skipped. A schema that the JSON
converter put around the payload is ignored.

Source: Debezium 2.x documentation, "Data change events".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, cast

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes.kind import Content, EnvelopeKind, UnwrappedRecord

_WRITES: Final = frozenset({"c", "r", "u"})
_DELETE: Final = "d"
_OP, _SOURCE, _TIME = "op", "source", "ts_ms"
_NO_ROW: Final = frozenset({"t", "m"})


def open_change(tree: Any, record: Record) -> UnwrappedRecord | str | None:
    """Open one change event; None for a change that concerns no row."""
    del record
    change = _payload(tree)
    if change is None:
        return "not_in_envelope"
    op, before, after = change[_OP], change.get("before"), change.get("after")
    if op in _NO_ROW:
        return None
    if op == _DELETE and (before is None or isinstance(before, dict)):
        return UnwrappedRecord(_row(before or {}, change), deleted=True)
    if op in _WRITES and isinstance(after, dict):
        return UnwrappedRecord(_row(cast("dict[str, Any]", after), change))
    return "not_in_envelope"


def _payload(tree: Any) -> dict[str, Any] | None:
    if isinstance(tree, dict) and "schema" in tree and "payload" in tree:
        tree = cast("dict[str, Any]", tree)["payload"]
    if not isinstance(tree, dict):
        return None
    change = cast("dict[str, Any]", tree)
    return change if isinstance(change.get(_OP), str) else None


def _row(columns: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    about = {"__op": change[_OP], "__ts_ms": change.get(_TIME), "__source": change.get(_SOURCE)}
    return columns | about


_AT: Final = ((), ("payload",))

KIND = EnvelopeKind(
    "debezium",
    open_change,
    MappingProxyType({}),
    tuple(Content((*at, row)) for at in _AT for row in ("before", "after")),
    (("schema",), *((*at, about) for at in _AT for about in (_OP, _SOURCE, _TIME))),
)
