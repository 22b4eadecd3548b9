"""Reads only the mapped fields of a JSON value, by generated msgspec structs.

The *strict* reader is a struct type whose leaves are scalars; it reads nearly every record. Of a value that
it refuses, `fields` reads the mapped fields with whatever content, so that the reason can be found. Both skip
fields that are not mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

import msgspec

from streamwatch.edge.decoders.fields import MAX_TEXT_BYTES

Row: TypeAlias = tuple[Any, ...]
Path: TypeAlias = tuple[str, ...]
Tree: TypeAlias = dict[str, Any]
"""Field name → leaf type, or the tree of the fields in it."""

_TEXT: Any = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT_BYTES)]
SCALAR: Any = _TEXT | int | float | bool | None
"""Type of a scalar leaf; empty and overlong texts are refused."""
SCORES: Any = dict[str, float] | None


class ValuePaths:
    """Readers from a value to the contents of named slots, `None` where absent or null.

    Parameters
    ----------
    paths
        Path of one name or more, and leaf type (`SCALAR` or `SCORES`) by slot. Slots are identifiers.
    constants
        Contents of the slots that have no path.
    """

    def __init__(self, paths: Mapping[str, tuple[Path, Any]], constants: Mapping[str, object]) -> None:
        self._top = _numbered(path[0] for path, _ in paths.values())
        fields = [(attribute, Any, None) for attribute in self._top.values()]
        self._any = msgspec.json.Decoder(msgspec.defstruct("Any", fields, rename=_inverse(self._top)))
        self.strict: Callable[[bytes], Any] | None = None
        """Decoder of values to structs that `getter` reads; None where paths overlap (`a`, `a.b`)."""
        self.flat = False
        """Whether structs of `strict` have each slot as an attribute of its name."""
        self._attributes = {slot: slot for slot in constants}
        tree = _tree(paths.values())
        if tree is not None:
            heads = {path[0]: slot for slot, (path, _) in paths.items() if len(path) == 1}
            names = {name: heads.get(name, f"object_{i}") for i, name in enumerate(tree)}
            self.strict = msgspec.json.Decoder(_struct(tree, names, constants)).decode
            self._attributes |= {slot: _attribute(tree, names, path) for slot, (path, _) in paths.items()}
            self.flat = all(slot == attribute for slot, attribute in self._attributes.items())

    def getter(self, slots: Sequence[str]) -> Callable[[Any], Row]:
        """Make the function from a struct of `strict` to the contents of two or more slots, in order.

        The function raises AttributeError where an object on a path is null.
        """
        return attrgetter(*(self._attributes.get(slot, slot) for slot in slots))

    def fields(self, value: bytes) -> dict[str, Any]:
        """Decode the top-level fields that paths begin with, of any type; raises as msgspec does."""
        top = self._any.decode(value)
        return {name: getattr(top, attribute) for name, attribute in self._top.items()}


def _numbered(names: Iterable[str]) -> dict[str, str]:
    """Return an identifier for each field name, numbered by first appearance."""
    return {name: f"field_{i}" for i, name in enumerate(dict.fromkeys(names))}


def _inverse(attributes: Mapping[str, str]) -> dict[str, str]:
    return {attribute: name for name, attribute in attributes.items()}


def _tree(paths: Iterable[tuple[Path, Any]]) -> Tree | None:
    """Merge paths to a tree; None where one path ends inside another, or a leaf has two types."""
    root: Tree = {}
    for path, leaf in paths:
        here = root
        for name in path[:-1]:
            below = here.setdefault(name, {})
            if not isinstance(below, dict):
                return None
            here = below
        if here.setdefault(path[-1], leaf) is not leaf:
            return None
    return root


def _struct(tree: Tree, names: Mapping[str, str], constants: Mapping[str, object]) -> Any:
    """Make the struct type of a tree; absent objects are read as empty, constants are class attributes."""
    fields: list[tuple[str, Any, Any]] = []
    for name, attribute in names.items():
        below = tree[name]
        if isinstance(below, dict):
            inner = _struct(below, _numbered(below), {})
            fields.append((attribute, inner | None, inner()))
        else:
            fields.append((attribute, below, None))
    return msgspec.defstruct(
        "Strict", fields, rename=_inverse(names), namespace=dict(constants), frozen=True, gc=False
    )


def _attribute(tree: Tree, names: Mapping[str, str], path: Path) -> str:
    """Return the dotted attribute, for `attrgetter`, at which `_struct` put the leaf of a path."""
    attributes, here = [names[path[0]]], tree[path[0]]
    for name in path[1:]:
        attributes.append(_numbered(here)[name])
        here = here[name]
    return ".".join(attributes)
