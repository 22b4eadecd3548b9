"""Pieces that schemas are made of."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Schema: TypeAlias = "dict[str, Any]"
NUMBER: Final[Schema] = {"oneOf": [{"type": "number"}, {"enum": ["+Inf", "-Inf"]}]}


def ref(name: str) -> Schema:
    """The schema of this name, wherever one is expected."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(required: Schema, **optional: Schema) -> Schema:
    """Schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def lead(description: str) -> Schema:
    """Schema of a mean difference of utilities, in [-1, 1]."""
    return {"type": "number", "minimum": -1, "maximum": 1, "description": description}


def ratio(description: str) -> Schema:
    """Schema of a share, in [0, 1]."""
    return {"type": "number", "minimum": 0, "maximum": 1, "description": description}


PUBLISHED: Final[Schema] = {
    "type": ["number", "null"],
    "description": "Seconds since 1970; null before the first report",
}
FORGETTING: Final[Schema] = {
    "type": ["string", "null"],
    "description": "The forgetting under which the numbers are",
}
NAMES: Final[Schema] = {"type": "array", "items": {"type": "string"}}
POINTS: Final[Schema] = {"type": "array", "items": {"type": ["number", "null"]}}
ALARMS: Final[Schema] = {"type": "array", "items": ref("Alarm")}
FOLD_ACCURACIES: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": ratio("Accuracy")},
    "description": "Accuracy by forgetting and fold, of a model that predicts in folds",
}
