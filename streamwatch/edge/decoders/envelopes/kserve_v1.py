"""KServe's v1 protocol: `instances` in the request, `predictions` in the response.

Paths begin with `value.id`, `value.model` (both from the logger's CloudEvent, or from fields beside the
arrays), `value.event` (the attributes of that CloudEvent), `value.instances` or `value.predictions`. By
default each element of `predictions` is a class, and its id is `<id>#<index>`. A request without its response
is skipped.

Source: KServe documentation, "V1 Inference Protocol" and "Inference Logger".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes.cloudevents import first_text, logged
from streamwatch.edge.decoders.envelopes.kind import EnvelopeKind, UnwrappedRecord


def open_v1(tree: Any, record: Record) -> UnwrappedRecord | str | None:
    """Open one response; None for a request alone."""
    found = logged(tree, record)
    if isinstance(found, str):
        return found
    instances, predictions = found.request.get("instances"), found.response.get("predictions")
    if not isinstance(predictions, list):
        return None if isinstance(instances, list) else "not_in_envelope"
    attributes, response = found.attributes, found.response
    return UnwrappedRecord(
        {
            "id": first_text(attributes.get("id"), response.get("id"), found.request.get("id")),
            "model": first_text(
                attributes.get("inferenceservicename"), response.get("model_name"), attributes.get("model")
            ),
            "instances": instances,
            "predictions": predictions,
            "event": attributes,
        }
    )


KIND = EnvelopeKind("kserve_v1", open_v1, MappingProxyType({"prediction": "value.predictions[]"}))
