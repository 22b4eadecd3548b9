"""CloudEvents 1.0 by their Kafka protocol binding: structured mode and binary mode give the same content.

Paths lead into one object of the attributes (`value.id`, `value.source`, `value.type`, `value.time`,
extensions) and `value.data`. In binary mode attributes are headers named `ce_…`, and the record's value is
the data; in structured mode the value is a JSON object of both. Data in `data_base64` must be JSON.

Source: CloudEvents specification 1.0.2, "Kafka Protocol Binding" §3 and "JSON Event Format" §3.
"""

from __future__ import annotations

import base64
import binascii
from types import MappingProxyType
from typing import Any, Final, cast

import msgspec

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes.kind import Content, EnvelopeKind, UnwrappedRecord

_PREFIX: Final = "ce_"
_REQUIRED: Final = ("id", "source", "type")


def event_of(tree: Any, record: Record) -> dict[str, Any] | str:
    """Return an event's attributes and `data` as one object, or the reason why the record has none."""
    event = _from_headers(tree, record) if _is_binary(record) else _from_object(tree)
    if event is None or any(not isinstance(event.get(name), str) for name in _REQUIRED):
        return "not_in_envelope"
    return event


def is_event(tree: Any, record: Record) -> bool:
    """Tell whether a record declares itself a CloudEvent, by a header or a field."""
    return _is_binary(record) or (isinstance(tree, dict) and "specversion" in tree)


def _is_binary(record: Record) -> bool:
    return any(name == f"{_PREFIX}specversion" for name, _ in record.headers)


def _from_headers(tree: Any, record: Record) -> dict[str, Any] | None:
    event: dict[str, Any] = {}
    for name, content in record.headers:
        if name.startswith(_PREFIX) and content is not None:
            try:
                event[name.removeprefix(_PREFIX)] = content.decode()
            except UnicodeDecodeError:
                return None
    return event | {"data": tree}


def _from_object(tree: Any) -> dict[str, Any] | None:
    if not isinstance(tree, dict) or "specversion" not in tree:
        return None
    event = cast("dict[str, Any]", tree)
    if "data_base64" not in event:
        return event
    data = _data(event["data_base64"])
    return None if data is None else event | {"data": data}


def _data(text: Any) -> Any:
    """Parse JSON written in base64; None if it is none."""
    try:
        return msgspec.json.decode(base64.b64decode(text, validate=True))
    except (binascii.Error, TypeError, ValueError, RecursionError):
        return None


def open_event(tree: Any, record: Record) -> UnwrappedRecord | str:
    """Open one CloudEvent: return its content, or the reason why it is invalid."""
    event = event_of(tree, record)
    return event if isinstance(event, str) else UnwrappedRecord(event)


_FIELDS: Final = ("id", "model", "prediction", "label", "timestamp", "scores", "fold")

KIND = EnvelopeKind(
    "cloudevents",
    open_event,
    MappingProxyType({field: f"value.data.{field}" for field in _FIELDS}),
    (Content(()), Content((), ("data",))),
    (("specversion",), ("data_base64",), *((name,) for name in _REQUIRED)),
)
