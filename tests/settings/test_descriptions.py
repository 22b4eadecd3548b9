"""Descriptions of keys: given ones, docstrings of the class and of its bases, in the schema as well."""

from __future__ import annotations

from pydantic import Field

from streamwatch.settings.sections import Described, descriptions


class Base(Described):
    kept: int = 1
    """Text of the base."""
    replaced: int = 2
    """Text that nobody sees."""


class Derived(Base):
    replaced: int = 3
    """Text over

    several lines.
    """
    given: int = Field(default=4, description="Text that was given.")
    """Text of the source."""
    silent: int = 5


TEXTS = {
    "kept": "Text of the base.",
    "replaced": "Text over\n\nseveral lines.",
    "given": "Text that was given.",
}


def test_texts_are_those_given_or_else_the_docstrings_of_the_class_or_of_its_bases() -> None:
    assert descriptions(Derived) == TEXTS


def test_the_schema_has_them() -> None:
    properties = Derived.model_json_schema()["properties"]
    assert {name: key["description"] for name, key in properties.items() if "description" in key} == TEXTS
    assert "silent" in properties
