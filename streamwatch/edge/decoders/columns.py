"""Judges many records at once, field by field, as long as all of them are what nearly every record is.

A loop over records costs a bytecode per check and record; a column costs a call. Whatever is out of the
ordinary (a name not met before, an id that is no plain text, a fold) gives None, and whoever asked judges
those records one by one: columns decide nothing that the rules for one record would decide otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from streamwatch.core.events import Event, Label, Prediction
from streamwatch.core.ports import Record
from streamwatch.edge.decoders.fields import MAX_TIMESTAMP_MS
from streamwatch.edge.decoders.names import Names

UNDECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError)
"""What a strict reader raises on a value that it refuses."""
PIECE = 96
"""Records judged together: one that is out of the ordinary makes all of them be judged one by one."""


class Columns:
    """Reads records whose fields all live at the top of the value, or are constant.

    Parameters
    ----------
    strict
        From a value to what was found in it, with the contents of each slot as an attribute.
    models, classes
        The names met so far.
    scores
        Judges the scores of one record; None if they are invalid.
    milliseconds
        Whether timestamps are in milliseconds; otherwise records that carry one are left to others.
    keys
        What ids are known as from here on, if not as they are.
    """

    def __init__(
        self,
        strict: Callable[[bytes], Any],
        models: Names,
        classes: Names,
        scores: Callable[[Any], dict[str, float] | None],
        *,
        milliseconds: bool,
        keys: Callable[[Sequence[str]], Sequence[str]] | None = None,
    ) -> None:
        self._strict = strict
        self._models = models
        self._classes = classes
        self._scores = scores
        self._milliseconds = milliseconds
        self._keys = keys

    def predictions(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Event] | None:
        """The predictions; None if any of them must be judged on its own."""
        found = self._found(records)
        if found is None or [each.fold for each in found].count(None) < len(found):
            return None
        names = self._models.cached([each.model for each in found])
        classes = self._classes.cached([each.prediction for each in found])
        times = [each.timestamp for each in found]
        scores = [each.scores for each in found]
        if names is None or classes is None or not self._are_times(times):
            return None
        absent = scores.count(None)
        if absent < len(scores):
            scores = [None if raw is None else self._scores(raw) for raw in scores]
            if scores.count(None) > absent:
                return None
        return list(map(Prediction, self._ids(found), names, classes, stamps, times, scores))

    def labels(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Event] | None:
        """The labels; None if any of them must be judged on its own."""
        found = self._found(records)
        if found is None:
            return None
        names = models = [each.model for each in found]
        if models.count(None) < len(models):
            names = self._models.cached(models)
        classes = self._classes.cached([each.label for each in found])
        times = [each.timestamp for each in found]
        if names is None or classes is None or not self._are_times(times):
            return None
        return list(map(Label, self._ids(found), classes, stamps, names, times))

    def _ids(self, found: Sequence[Any]) -> Sequence[str]:
        ids = [each.id for each in found]
        return ids if self._keys is None else self._keys(ids)

    def _found(self, records: Sequence[Record]) -> list[Any] | None:
        """Contents of the values; None if one of them was refused, or an id is not plain ASCII."""
        values: list[Any] = [record.value for record in records]
        try:
            found = list(map(self._strict, values))
            ids = "".join([each.id for each in found])
            written = b"".join(values)
        except (*UNDECODED, TypeError):  # a null value, an id that is no text
            return None
        # JSON text has no control characters but DEL and escaped ones: without a backslash, none to look for.
        if not ids.isascii() or ((b"\\" in written or "\x7f" in ids) and not ids.isprintable()):
            return None
        return found

    def _are_times(self, column: Sequence[Any]) -> bool:
        kinds = set(map(type, column))
        if kinds == {int}:
            return self._milliseconds and min(column) >= 0 and max(column) <= MAX_TIMESTAMP_MS
        return kinds == {type(None)}
