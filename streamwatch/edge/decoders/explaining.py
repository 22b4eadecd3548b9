"""Explains to a person why a record is invalid: the path that was read, and the fields that are there.

Names of fields and types of contents are shown, never a content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from streamwatch.core.ports import Record
from streamwatch.core.records.events import CARRIED_FIELDS
from streamwatch.edge.decoders.mapping import (
    FieldLocation,
    InArray,
    InFields,
    InHeader,
    InKey,
    InValue,
    Named,
    Paths,
    Step,
    TopicMapping,
    is_each,
    notation,
    parse_paths,
    parts_of,
    paths_of,
    threshold_of,
)

SHOWN: Final = 8
"""Names shown of one object at most."""
LONGEST: Final = 40
"""Characters shown of a name at most."""
_PARTS: Final = ("missing_", "invalid_")
_SLOTS: Final = ("id", "model", "timestamp", "scores", "fold", *CARRIED_FIELDS)
_OF_CLASSES: Final = frozenset({"class", "score", "class_scores", "prediction", "label"})


def explained(
    reason: str, mapping: TopicMapping, side: Literal["prediction", "label"], tree: Any, record: Record
) -> str:
    """Say what the record has at the path that a reason is about; empty where it is about no path.

    Parameters
    ----------
    reason
        Reason for which the record is invalid.
    mapping, side
        The mapping, and whether it makes predictions or labels.
    tree
        The parsed value, without its envelope.
    record
        The record, for its key and headers.
    """
    if reason == "unknown_kind":
        paths = [] if mapping.kind is None else [mapping.kind.field]
    elif reason in {"missing_elements", "element_counts_differ", "too_many_elements"}:
        paths = [path for slot in (*_SLOTS[:4], side) if _is_each(path := paths_of(mapping, slot))]
    else:
        paths = [_path(reason, mapping, side)]
    seen = dict.fromkeys(_seen(path, tree, record) for path in paths if path is not None)
    return "; ".join(each for each in seen if each)


def _path(reason: str, mapping: TopicMapping, side: str) -> Paths | None:
    """Return the path of the field that a reason is about; None for another reason."""
    about = reason.removesuffix("_part")
    for part in _PARTS:
        about = about.removeprefix(part)
    if about == "threshold":
        return threshold_of(mapping, side)
    if about in _OF_CLASSES:
        return paths_of(mapping, side)
    return paths_of(mapping, about) if about in _SLOTS else None


def _is_each(paths: Paths | None) -> bool:
    return paths is not None and any(map(is_each, parts_of(parse_paths(paths))))


def _seen(paths: Paths, tree: Any, record: Record) -> str:
    """Describe what a record has at paths; of several, only the first that has nothing, if any."""
    found = [_found(location, tree, record) for location in parts_of(parse_paths(paths))]
    lacking = [text for text, is_there in found if not is_there]
    text = lacking[0] if lacking else " and ".join(dict.fromkeys(text for text, _ in found))
    if not text or text.startswith(f"{paths} is "):
        return text
    return f"looked at {notation(paths)}: {text}"


def _found(location: FieldLocation, tree: Any, record: Record) -> tuple[str, bool]:
    match location:
        case InValue(path):
            return _walked(path, tree)
        case InArray(path, each):
            return _walked((*path, *((0, *each) if each is not None else ())), tree)
        case InFields(path):
            return _walked(path, tree)
        case InKey():
            key = record.key
            return "the record has no key" if key is None else _of_key(key), key is not None
        case InHeader(name):
            names = [header for header, _ in record.headers]
            text = _names(names, "the record has the headers", "the record has no headers")
            return text, name in names
        case _:
            return "", True


def _of_key(key: bytes) -> str:
    return f"the record has a key of {len(key)} bytes"


def _walked(path: Sequence[Step], tree: Any) -> tuple[str, bool]:  # noqa: PLR0911 - a return each
    """Describe how far a path leads in a tree; and tell whether it leads to its end."""
    here, at = tree, "value"
    for step in path:
        if isinstance(step, str):
            if not isinstance(here, dict):
                return f"{at} is {_kind(here)}, not an object", False
            fields = cast("Mapping[str, Any]", here)
            if step not in fields:
                return f"{at} has {_names(list(fields), 'the fields', 'no fields')}", False
            here, at = fields[step], f"{at}.{_printable(step)}"
            continue
        if not isinstance(here, list):
            return f"{at} is {_kind(here)}, not an array", False
        elements = cast("list[Any]", here)
        if isinstance(step, Named):
            return f"{at} is {_kind(here)}", True
        if step >= len(elements):
            return f"{at} is {_kind(here)}", False
        here, at = elements[step], f"{at}[{step}]"
    if isinstance(here, dict):
        names = _names(list(cast("Mapping[str, Any]", here)), "the fields", "no fields")
        return f"{at} is an object with {names}", True
    return f"{at} is {_kind(here)}", here is not None


def _kind(content: Any) -> str:
    match content:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return f"a text of {len(content)} characters"
        case list():
            return f"an array of {len(cast('list[Any]', content))} elements"
        case _:
            return "an object"


def _names(names: Sequence[str], some: str, none: str) -> str:
    if not names:
        return none
    shown = ", ".join(map(_printable, names[:SHOWN]))
    return f"{some} {shown}" + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _printable(name: str) -> str:
    """Shorten a name to `LONGEST` characters, its control characters escaped."""
    short = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
    if short.isprintable() and short:
        return short
    return (
        "".join(
            c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in short
        )
        or '""'
    )
