"""The notation of places: `value.a.b`, `value.a[].b`, `key`, `key.a`, `header:x`, `topic`, `=text`.

A field of a mapping has one place, or several whose texts make one: `[value.model, value.version]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Step: TypeAlias = str | int
"""A field's name, or an index."""
Places: TypeAlias = str | tuple[str, ...]
"""One place, or those whose texts are joined; in the latter a place that may be empty ends in `?`."""
OPTIONAL: Final = "?"
"""End of a place, among several, that need not have a content. A field called so is written in quotes."""

PLACE: Final = (
    r'^(key(\.("([^"]|"")+"|[^.\[\]"][^.\[\]]*))*|topic|header:.+|=.+'
    r'|value(\.("([^"]|"")+"|[^.\[\]"][^.\[\]]*)|\[[0-9]*\])+)$'
)
"""The notation as a regular expression, for JSON Schema; `[]` at most once is not said by it."""
_STEP = re.compile(r'\.(?:"((?:[^"]|"")+)"|([^.\[\]"][^.\[\]]*))|\[([0-9]{0,9})\]')
_NEGATIVE = re.compile(r"\[-\d+\]")


@dataclass(frozen=True, slots=True)
class InValue:
    """Names of fields, each in the object before it, from the value on."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InArray:
    """A path on which arrays lie.

    Attributes
    ----------
    path
        Names of fields, and indices from 0, from the value on.
    each
        What follows `[]`: `path` is then the place of an array, and this the place in each of its elements.
        None: the place is one for the whole record.
    """

    path: tuple[Step, ...]
    each: tuple[Step, ...] | None = None


@dataclass(frozen=True, slots=True)
class InKey:
    """The record's key, as text; or a field of it."""

    path: tuple[str, ...] = ()
    """Names of fields, each in the object before it, where the key is an object; empty for the key itself."""


@dataclass(frozen=True, slots=True)
class InHeader:
    """The last header of this name, as text."""

    name: str


@dataclass(frozen=True, slots=True)
class InTopic:
    """The topic's name."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The same text for every record."""

    text: str


FieldLocation: TypeAlias = InValue | InArray | InKey | InHeader | InTopic | Constant


@dataclass(frozen=True, slots=True)
class Joined:
    """Several places, whose texts make one (see `joined_text`).

    Attributes
    ----------
    parts
        The places, in the order of their texts.
    optional
        Of each, whether it may have no content.
    """

    parts: tuple[FieldLocation, ...]
    optional: tuple[bool, ...]


AnyLocation: TypeAlias = FieldLocation | Joined


def parse_places(places: Places) -> AnyLocation:
    """Read the notation of one place, or of several that are joined.

    Raises
    ------
    ValueError
        A place is not in the notation.
    """
    if isinstance(places, str):
        return parse_field_location(places)
    texts = [place.removesuffix(OPTIONAL) for place in places]
    return Joined(
        tuple(map(parse_field_location, texts)), tuple(place.endswith(OPTIONAL) for place in places)
    )


def parse_field_location(text: str) -> FieldLocation:
    """Read the notation of one place.

    Raises
    ------
    ValueError
        Naming the forms that are understood.
    """
    if text == "key" or text.startswith("key."):
        return _in_key(text)
    if text == "topic":
        return InTopic()
    if text.startswith("=") and len(text) > 1:
        return Constant(text[1:])
    if text.startswith("header:") and len(text) > len("header:"):
        return InHeader(text[len("header:") :])
    steps = _steps(text.removeprefix("value")) if text.startswith("value") else []
    if not steps:
        raise ValueError(f"{_expected(text)}, got {text!r}")
    if steps.count("[]") > 1:
        raise ValueError(f"expected [] at most once (one event per element of one array), got {text!r}")
    path = [step.name if isinstance(step, _Name) else step for step in steps]
    if "[]" in steps:
        at = steps.index("[]")
        return InArray(tuple(path[:at]), tuple(path[at + 1 :]))
    names = tuple(step for step in path if isinstance(step, str))
    return InValue(names) if len(names) == len(path) else InArray(tuple(path))


def notation(places: Places | None) -> str:
    """Write one place, or several, as settings have them; `null` without any."""
    if places is None:
        return "null"
    return places if isinstance(places, str) else f"[{', '.join(places)}]"


def _in_key(text: str) -> InKey:
    if text == "key":
        return InKey()
    steps = _steps(text.removeprefix("key"))
    names = tuple(step.name for step in steps if isinstance(step, _Name))
    if not names or len(names) < len(steps):
        raise ValueError(f"expected key or key.field, fields in objects only, got {text!r}")
    return InKey(names)


def is_each(location: FieldLocation | None) -> bool:
    """Tell whether a place lies in each element of an array."""
    return isinstance(location, InArray) and location.each is not None


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a field: whatever it is, it is no `[]`."""

    name: str


def _steps(text: str) -> list[_Name | int | Literal["[]"]]:
    """The steps of a path, as far as it is one; nothing if it is none."""
    steps: list[_Name | int | Literal["[]"]] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return []
        quoted, name, index = found.groups()
        if index is not None:
            steps.append(int(index) if index else "[]")
        else:
            steps.append(_Name(quoted.replace('""', '"') if quoted is not None else name))
        at = found.end()
    return steps


def _expected(text: str) -> str:
    if _NEGATIVE.search(text):
        return "expected an index that counts from the front, from 0"
    if text.startswith("value") and any(sign in text for sign in '[]"'):
        return (
            "expected value.list[0].field for one element, value.list[].field for one event per element, or "
            'value."name" for a name with dots or brackets'
        )
    return "expected value.some.field, key, header:name, topic or a constant =text"
