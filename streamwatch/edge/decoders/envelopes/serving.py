"""Parts that the protocols of model servers share: the logged answer, and the request it belongs to.

A server's logger writes request and answer as CloudEvents of one id; others write one object with both, as
`request` and `response`, or the bare answer. A request alone holds no prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes.cloudevents import event_of, is_event


@dataclass(frozen=True, slots=True)
class Logged:
    """A request, an answer, or both, as objects; empty where there is none."""

    request: dict[str, Any]
    response: dict[str, Any]
    attributes: dict[str, Any]
    """Attributes of the CloudEvent, if it is one; else the fields beside request and answer."""


def logged(tree: Any, record: Record) -> Logged | str:
    """Find request and answer, or the reason why the record holds none."""
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
    """Return the first candidate that is neither None nor an empty text."""
    return next((each for each in candidates if each is not None and each != ""), None)
