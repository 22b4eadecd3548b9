"""CloudEvents 1.0 by their Kafka protocol binding: structured mode and binary mode give the same content.

Paths lead into one object of the attributes (`value.id`, `value.source`, `value.type`, `value.time`,
extensions) and `value.data`. In binary mode attributes are headers named `ce_…`, and the record's value is
the data; in structured mode the value is a JSON object of both. Data in `data_base64` must be JSON.

Source: CloudEvents specification 1.0.2, "Kafka Protocol Binding" §3 and "JSON Event Format" §3.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
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


# Requests and responses that model servers log, for the protocols of all of them.
#
# A server's logger writes request and response as two CloudEvents of one id; others write one object with
# both, as `request` and `response`, or the bare response. A request alone holds no prediction.


@dataclass(frozen=True, slots=True)
class Logged:
    """A request, a response, or both, as objects; empty where absent."""

    request: dict[str, Any]
    response: dict[str, Any]
    attributes: dict[str, Any]
    """Attributes of the CloudEvent, if it is one, and fields of an object with `request` or `response`."""


def logged(tree: Any, record: Record) -> Logged | str:
    """Find request and response, or return the reason why the record has neither."""
    attributes: dict[str, Any] = {}
    if is_event(tree, record):
        event = event_of(tree, record)
        if isinstance(event, str):
            return event
        attributes, tree = event, event.get("data")
    if not isinstance(tree, dict):
        return "not_in_envelope"
    body = cast("dict[str, Any]", tree)
    if isinstance(body.get("response"), dict):
        request = body.get("request")
        return Logged(
            cast("dict[str, Any]", request) if isinstance(request, dict) else {},
            body["response"],
            body | attributes,
        )
    if isinstance(body.get("request"), dict):
        return Logged(body["request"], {}, body | attributes)
    if str(attributes.get("type", "")).endswith(".request"):
        return Logged(body, {}, attributes)
    return Logged(body, body, attributes)


def first_text(*candidates: object) -> object:
    """Return the first candidate that is neither None nor an empty text; None without one."""
    return next((each for each in candidates if each is not None and each != ""), None)


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
