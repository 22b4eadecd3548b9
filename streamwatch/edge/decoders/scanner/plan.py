"""From a topic's mapping to what the compiled loop is told; None where it cannot read such records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.fetched import PADDING
from streamwatch.core.records import LABEL, PREDICTION
from streamwatch.edge.decoders.mapping import (
    AnyLocation,
    Constant,
    FieldLocation,
    InArray,
    InHeader,
    InKey,
    InTopic,
    InValue,
    Joined,
    KindRule,
    TimestampUnit,
)
from streamwatch.edge.decoders.scanner.contents import (
    ISO_8601,
    MICROSECONDS,
    MILLISECONDS,
    NANOSECONDS,
    SECONDS,
)
from streamwatch.edge.decoders.scanner.inputs import Plan
from streamwatch.edge.decoders.scanner.shape import Fields

UNITS: Final[Mapping[TimestampUnit, int]] = {
    "ms": MILLISECONDS,
    "s": SECONDS,
    "us": MICROSECONDS,
    "ns": NANOSECONDS,
    "iso8601": ISO_8601,
}
"""Units of timestamps."""
MAX_FIELDS: Final = 62
SEGMENT_SLOT: Final = "segments."
"""Slots of segments begin so, and end with the segment's name."""
_SIDES: Final = {"prediction": PREDICTION, "label": LABEL, "both": -1}
_CONSTANTS: Final = frozenset({"model", "prediction", "label"})
"""Slots that may be the same for every record; any other one would make all records of a kind."""
_JOINED: Final = frozenset({"id", "model"})
"""Slots that may be made of several contents."""


class _Tree:
    """Fields by the object that they are in, in the order that nodes are numbered; contents outside of it."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, int | str]] = [{}]
        self.leaves = 0
        self.outside: dict[InKey | InHeader, int] = {}

    def content(self, location: FieldLocation) -> int | None:
        """The content at a place, a new one if nobody wanted it before; None where it cannot be read."""
        match location:
            case InValue(path):
                return self.leaf(path)
            case InKey(()) | InHeader():
                if location not in self.outside:
                    self.outside[location] = self.leaves
                    self.leaves += 1
                return self.outside[location]
            case InKey() | InArray() | Constant() | InTopic():
                return None

    def leaf(self, path: Sequence[str]) -> int | None:
        """The content at a path, a new one if nobody wanted it before; None where paths overlap."""
        node = 0
        for name in path[:-1]:
            below = self.nodes[node].setdefault(name, f"{len(self.nodes)}")
            if isinstance(below, int):
                return None
            node = int(below)
            if node == len(self.nodes):
                self.nodes.append({})
        found = self.nodes[node].setdefault(path[-1], self.leaves)
        if isinstance(found, str):
            return None
        if found == self.leaves:
            self.leaves += 1
        return found


def plan_of(
    side: str,
    locations: Mapping[str, AnyLocation | None],
    numbers: Mapping[str, int],
    unit: TimestampUnit,
    kind: KindRule | None,
    prefix: bytes,
) -> Plan | None:
    """Plan the reading of a topic's records.

    Parameters
    ----------
    side
        What the topic carries.
    locations
        Where each slot is found, by its name; an id and a model may be joined of several contents.
    numbers
        Numbers of the names that are the same for every record, by slot.
    unit
        Of timestamps.
    kind
        What tells predictions from labels on a topic of both.
    prefix
        What keys begin with, before the id.
    """
    tree = _Tree()
    leaves: dict[str, int] = {}
    joined: dict[str, list[int]] = {}
    for slot, location in locations.items():
        match location:
            case None:
                continue
            case Constant() | InTopic():
                if slot not in _CONSTANTS or numbers.get(slot, -1) < 0:
                    return None
            case Joined(parts):
                found = [tree.content(part) for part in parts if not (slot == "model" and _is_fixed(part))]
                places = [leaf for leaf in found if leaf is not None]
                if slot not in _JOINED or len(places) < max(len(found), 1):
                    return None
                joined[slot] = places
            case _:
                leaf = tree.content(location)
                if leaf is None:
                    return None
                leaves[slot] = leaf
    for slot in _JOINED & leaves.keys():
        joined[slot] = [leaves[slot]]
    fields, outside = _fields(tree), tree.outside
    if fields is None or "id" not in joined:
        return None
    headers = [(where.name.encode(), leaf) for where, leaf in outside.items() if isinstance(where, InHeader)]
    texts = [text.encode() for text in ((kind.prediction, kind.label) if kind is not None else ("", ""))]
    sizes = [len(name) for name, _ in headers]
    return Plan(
        fields=fields,
        key=outside.get(InKey(), -1),
        header_leaf=_integers([leaf for _, leaf in headers]),
        header_at=_starts(sizes),
        header_size=_integers(sizes),
        header_names=_padded(b"".join(name for name, _ in headers)),
        id=_integers(joined["id"]),
        model=_integers(joined.get("model", [])),
        prediction=leaves.get("prediction", -1),
        label=leaves.get("label", -1),
        timestamp=leaves.get("timestamp", -1),
        kind=leaves.get("kind", -1),
        segments=_integers([leaf for slot, leaf in leaves.items() if slot.startswith(SEGMENT_SLOT)]),
        refused=_integers([leaves[slot] for slot in ("scores", "fold") if slot in leaves]),
        model_number=numbers.get("model", -1),
        prediction_number=numbers.get("prediction", -1),
        label_number=numbers.get("label", -1),
        side=_SIDES[side],
        kind_text=_padded(b"".join(texts)),
        kind_sizes=_integers([len(text) for text in texts]),
        unit=UNITS[unit],
        prefix=np.frombuffer(prefix, np.uint8),
    )


def _is_fixed(part: FieldLocation) -> bool:
    """Tell whether a part of a name is the same for every record, so that the others tell it."""
    return isinstance(part, Constant | InTopic)


def _fields(tree: _Tree) -> Fields | None:
    names = [name.encode() for node in tree.nodes for name in node]
    targets = [target for node in tree.nodes for target in node.values()]
    if len(names) > MAX_FIELDS:
        return None
    sizes = [len(name) for name in names]
    return Fields(
        first=_integers([0, *np.cumsum([len(node) for node in tree.nodes]).tolist()]),
        at=_starts(sizes),
        size=_integers(sizes),
        word=np.array([int.from_bytes(name[:8], "little") for name in names], np.uint64),
        leaf=_integers([target if isinstance(target, int) else -1 for target in targets]),
        node=_integers([-1 if isinstance(target, int) else int(target) for target in targets]),
        names=_padded(b"".join(names)),
    )


def _integers(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def _starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Starts of texts of these sizes that stand behind one another."""
    return np.cumsum([0, *sizes])[:-1].astype(np.int64)


def _padded(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content + bytes(PADDING), np.uint8)
