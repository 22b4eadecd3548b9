"""One mapping of a topic's records, read as trees: predictions or labels, one a record or one an element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from streamwatch.core.events import Event
from streamwatch.edge.decoders.field_locations import located
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.judging import LABEL_SLOTS, PREDICTION_SLOTS, Judge
from streamwatch.edge.decoders.lookup import Content, lookup, walk
from streamwatch.edge.decoders.mapping import TopicMapping, place_of
from streamwatch.edge.decoders.names import judged
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
        locations = {slot: located(slot, place_of(mapping, slot)) for slot in self._slots}
        if self._is_prediction:
            places = mapping.segments.items()
            locations |= {f"segments.{name}": located("segments", place) for name, place in places}
        self._lookups = {slot: lookup(location, topic) for slot, location in locations.items()}
        self._optional = side if mapping.optional else None
        self._each: dict[str, tuple[Step, ...]] = {
            slot: location.each
            for slot, location in locations.items()
            if isinstance(location, InArray) and location.each is not None
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
        return None if "model" in self._each else self._lookups["model"](content)

    def null(self, content: Content, record_ms: int, *, withdraws: bool) -> Event:
        """Make the event of a record without a value, or of one that says that a row was deleted."""
        id_ = None if self._each else self._lookups["id"](content)
        withdraws = withdraws and self._is_prediction
        return self.judge.null(content.record, record_ms, id_, self.model(content), withdraws=withdraws)

    def events(self, content: Content, record_ms: int) -> Iterable[Event]:
        """The events of one record; none if the class is optional and not there."""
        contents = {slot: find(content) for slot, find in self._lookups.items()}
        if self._optional is not None and contents[self._optional] is None:
            return ()
        if not self._each:
            return (self._judged(tuple(contents.values()), content.record, record_ms),)
        reason, count = self._counted(contents)
        id_: str | None = None
        if not reason and "id" not in self._each:
            id_, reason = judged(contents["id"], "missing_id", "invalid_id")
        if reason:
            return (self.judge.invalid(content.record, reason, self.model(content)),)
        rows = [self._row(contents, i, id_) for i in range(count)]
        if self._optional is not None:
            at = self._slots.index(self._optional)
            rows = [row for row in rows if row[at] is not None]
        return [self._judged(row, content.record, record_ms) for row in rows]

    def _row(self, contents: Mapping[str, Any], i: int, id_: str | None) -> tuple[Any, ...]:
        """Contents of the i-th element; without an id of its own it is known by its place."""
        row: list[Any] = []
        for slot, content in contents.items():
            steps = self._each.get(slot)
            if steps is None:
                row.append(f"{id_}#{i}" if slot == "id" else content)
            else:
                row.append(None if content is None else walk(content[i], steps))
        return tuple(row)

    def _counted(self, contents: Mapping[str, Any]) -> tuple[str, int]:
        """Elements of the arrays, or the reason why that is not one number."""
        lengths: set[int] = set()
        for slot in self._each:
            array = contents[slot]
            if isinstance(array, list):
                lengths.add(len(cast("Sequence[Any]", array)))
            elif array is not None or slot in _NEEDED:
                return "missing_elements", 0
        if len(lengths) > 1:
            return "element_counts_differ", 0
        count = lengths.pop() if lengths else 0
        if count == 0:
            return "missing_elements", 0
        return ("too_many_elements", 0) if count > MAX_ELEMENTS else ("", count)
