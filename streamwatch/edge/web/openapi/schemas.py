"""Schemas of what the server answers, made of the types of the documents that it sends."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from streamwatch.edge.web.documents import SENT

Schema: TypeAlias = "dict[str, Any]"
_NUMBER: Final[Schema] = {"anyOf": [{"type": "number"}, {"enum": ["+Inf", "-Inf"]}]}
_RECURSIVE: Final[Schema] = {
    "Tree": {
        "description": "Metric (without the prefix) → value, nested by label values in the labels' order",
        "type": "object",
        "additionalProperties": {"anyOf": [*_NUMBER["anyOf"], {"$ref": "#/components/schemas/Tree"}]},
    },
    "Series": {
        "description": "One value for each timestamp, null where undefined, nested as in Tree",
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "array", "items": {"type": ["number", "null"]}},
                {"$ref": "#/components/schemas/Series"},
            ]
        },
    },
}
_OPEN: Final[Schema] = {
    "Details": True,
    "SegmentValue": {"type": "number", "description": "A measure under its name"},
}
"""What objects may have beside their own properties; the others have no more than these."""


def ref(name: str) -> Schema:
    """The schema of this name, wherever one is expected."""
    return {"$ref": f"#/components/schemas/{name}"}


def schemas() -> Schema:
    """Schema of every document that is sent and of its parts, by name."""
    _, found = msgspec.json.schema_components(SENT, ref_template="#/components/schemas/{name}")
    for name, schema in found.items():
        del schema["title"]
        if (of_class := schema.get("description")) is not None:
            schema["description"] = " ".join(of_class.split())
        schema["additionalProperties"] = _OPEN.get(name, False)
    return {**found, **_RECURSIVE}
