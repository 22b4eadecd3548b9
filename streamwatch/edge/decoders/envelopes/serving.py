"""Finds the logged request and response of a model server, for all of their protocols.

A server's logger writes request and response as two CloudEvents of one id; others write one object with both,
as `request` and `response`, or the bare response. A request alone holds no prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes.cloudevents import event_of, is_event


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
