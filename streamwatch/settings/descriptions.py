"""Descriptions of keys: docstrings below them in the source, read when they are asked for.

Pydantic's `use_attribute_docstrings` reads them whenever a process starts, which is a tenth of all imports;
only the schema and the example of the configuration file need them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Described(BaseModel):
    """Model whose JSON Schema has the docstrings below its keys as their descriptions."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        keys = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in descriptions(cls).items():
            keys[name]["description"] = text
        return schema


def descriptions(section: type[BaseModel]) -> dict[str, str]:
    """Texts by key: what its field was given, else the docstring below it, here or in a base class."""
    found: dict[str, str] = {}
    for each in reversed(section.__mro__):
        if issubclass(each, Described):
            found |= _docstrings(each.__module__).get(each.__qualname__, {})
    given = {name: field.description or found.get(name) for name, field in section.model_fields.items()}
    return {name: text for name, text in given.items() if text}


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Docstrings below the annotated names of a module's classes, by class and name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: _below_names(each.body) for each in tree.body if isinstance(each, ast.ClassDef)}


def _below_names(body: list[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for before, after in pairwise(body):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            text = after.value if isinstance(after, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[before.target.id] = inspect.cleandoc(text.value)
    return found
