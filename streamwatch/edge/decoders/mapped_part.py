"""One mapping of a topic's records, read as trees: predictions or labels, one a record or one an element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from streamwatch.core.events import Event
from streamwatch.edge.decoders.field_locations import located, located_joined
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.joined_text import joined_text
from streamwatch.edge.decoders.judging import LABEL_SLOTS, PREDICTION_SLOTS, Judge
from streamwatch.edge.decoders.lookup import Content, lookup, walk
from streamwatch.edge.decoders.mapping import AnyLocation, FieldLocation, Joined, TopicMapping, places_of
from streamwatch.edge.decoders.names import judged
from streamwatch.edge.decoders.paths import Row
from streamwatch.edge.decoders.places import InArray, Step
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

MAX_ELEMENTS: Final = 4_096
"""Elements of one record: each of them is an event, which takes a few microseconds."""
_NEEDED: Final = frozenset({"id", "prediction", "label"})


class MappedPart:
    """Makes the events of one mapping.

    Parameters
    ----------
    topic
        The topic's name.
    side
        Which events the mapping makes.
    mapping
        Where each field lives.
    keys
        What valid ids are known as from here on, if not as they are.
    folds
        Which fold tests which id.

    Raises
    ------
    ValueError
        A place is not in the notation, or a name is not valid.
    """

    def __init__(
        self,
        topic: str,
        side: Literal["prediction", "label"],
        mapping: TopicMapping,
        keys: IdKeys | None,
        folds: Scheme | None,
    ) -> None:
        self._is_prediction = side == "prediction"
        self._slots = PREDICTION_SLOTS if self._is_prediction else LABEL_SLOTS
        self.judge = Judge(mapping, keys, folds)
        self._judged = self.judge.prediction if self._is_prediction else self.judge.label
        locations: dict[str, AnyLocation | None] = {
            slot: located_joined(slot, places_of(mapping, slot)) for slot in self._slots
        }
        if self._is_prediction:
            places = mapping.segments.items()
            locations |= {f"segments.{name}": located("segments", place) for name, place in places}
        # A part is a place by itself: of a slot its only one, or one of several.
        self._parts = {slot: _named_parts(slot, location) for slot, location in locations.items()}
        singles = {name: part for parts in self._parts.values() for name, (part, _) in parts.items()}
        self._joined = {slot for slot, location in locations.items() if isinstance(location, Joined)}
        self._lookups = {part: lookup(location, topic) for part, location in singles.items()}
        self._optional = side if mapping.optional else None
        self._each: dict[str, tuple[Step, ...]] = {
            part: location.each
            for part, location in singles.items()
            if isinstance(location, InArray) and location.each is not None
        }
        self._needed = {
            name
            for slot in _NEEDED & self._parts.keys()
            for name, (_, may_miss) in self._parts[slot].items()
            if not may_miss
        }
        self._kind = None if mapping.kind is None else lookup(located("kind", mapping.kind.field), topic)
        self._kinds: Mapping[str, bool] = {}
        if mapping.kind is not None:
            rule = mapping.kind
            self._kinds = {rule.label: not self._is_prediction, rule.prediction: self._is_prediction}
        self._when = [(lookup(located("when", place), topic), texts) for place, texts in mapping.when.items()]

    def applies(self, content: Content) -> bool | None:
        """Tell whether the mapping is for a record; None: it should say of which kind it is, and does not."""
        for find, texts in self._when:
            if canonical_text(find(content)) not in texts:
                return False
        if self._kind is None:
            return True
        return self._kinds.get(canonical_text(self._kind(content)) or "")

    def model(self, content: Content) -> Any:
        """The content of the model's place."""
        return self._outside("model", content)

    def null(self, content: Content, record_ms: int, *, withdraws: bool) -> Event:
        """Make the event of a record without a value, or of one that says that a row was deleted."""
        id_ = None if self._each else self._outside("id", content)
        withdraws = withdraws and self._is_prediction
        return self.judge.null(content.record, record_ms, id_, self.model(content), withdraws=withdraws)

    def events(self, content: Content, record_ms: int) -> Iterable[Event]:
        """The events of one record; none if the class is optional and not there."""
        contents = {part: find(content) for part, find in self._lookups.items()}
        if self._optional is not None and self._content(self._optional, contents) is None:
            return ()
        if not self._each:
            return (self._judged(self._row(contents), content.record, record_ms),)
        reason, count = self._counted(contents)
        id_: str | None = None
        if not reason and not self._is_each("id"):
            id_, reason = judged(self._content("id", contents), "missing_id", "invalid_id")
        if reason:
            return (self.judge.invalid(content.record, reason, self.model(content)),)
        rows = [
            self._row(self._element(contents, i), None if id_ is None else f"{id_}#{i}") for i in range(count)
        ]
        if self._optional is not None:
            at = self._slots.index(self._optional)
            rows = [row for row in rows if row[at] is not None]
        return [self._judged(row, content.record, record_ms) for row in rows]

    def _outside(self, slot: str, content: Content) -> Any:
        """The content of a slot; None where a part of it is in each element of an array."""
        if self._is_each(slot):
            return None
        return self._content(slot, {part: self._lookups[part](content) for part in self._parts[slot]})

    def _is_each(self, slot: str) -> bool:
        return not self._each.keys().isdisjoint(self._parts[slot])

    def _content(self, slot: str, contents: Mapping[str, Any]) -> Any:
        """The content of a slot, from those of its parts."""
        if slot not in self._joined:
            return contents[slot]
        parts = self._parts[slot]
        return joined_text([contents[part] for part in parts], [may_miss for _, may_miss in parts.values()])

    def _row(self, contents: Mapping[str, Any], id_: str | None = None) -> Row:
        """Contents of the slots; `id_` is that of an element without one of its own, known by its place."""
        if id_ is None and not self._joined:
            return tuple(contents.values())
        row = {slot: self._content(slot, contents) for slot in self._parts}
        return tuple((row if id_ is None else row | {"id": id_}).values())

    def _element(self, contents: Mapping[str, Any], i: int) -> Mapping[str, Any]:
        """Contents of the parts in the i-th element."""
        element = dict(contents)
        for part, steps in self._each.items():
            array = contents[part]
            element[part] = None if array is None else walk(array[i], steps)
        return element

    def _counted(self, contents: Mapping[str, Any]) -> tuple[str, int]:
        """Elements of the arrays, or the reason why that is not one number."""
        lengths: set[int] = set()
        for part in self._each:
            array = contents[part]
            if isinstance(array, list):
                lengths.add(len(cast("Sequence[Any]", array)))
            elif array is not None or part in self._needed:
                return "missing_elements", 0
        if len(lengths) > 1:
            return "element_counts_differ", 0
        count = lengths.pop() if lengths else 0
        if count == 0:
            return "missing_elements", 0
        return ("too_many_elements", 0) if count > MAX_ELEMENTS else ("", count)


def _named_parts(slot: str, location: AnyLocation | None) -> Mapping[str, tuple[FieldLocation | None, bool]]:
    """Places of a slot by a name for each, and whether there may be nothing; one is called like its slot."""
    if not isinstance(location, Joined):
        return {slot: (location, False)}
    each = zip(location.parts, location.optional, strict=True)
    return {f"{slot}/{i}": part for i, part in enumerate(each)}
