"""Reads fetched records by the compiled loop, and remembers the names that it is to know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import (
    Decoded,
    EventGroup,
    Invalid,
    Label,
    NullRecord,
    Prediction,
    Skipped,
    WrongFold,
)
from streamwatch.core.fetched import COLUMNS, PADDING
from streamwatch.core.records import ROW, SEPARATOR
from streamwatch.core.segments import segments_text
from streamwatch.core.texts import gather_texts
from streamwatch.core.vocabulary import Vocabulary
from streamwatch.edge.decoders.mapping import InValue
from streamwatch.edge.decoders.scanner.contents import MAX_ID_BYTES
from streamwatch.edge.decoders.scanner.inputs import Plan, Tables
from streamwatch.edge.decoders.scanner.plan import plan_of
from streamwatch.edge.decoders.scanner.scan import NEW_NAME, ORDINARY, scan
from streamwatch.edge.decoders.scanner.shape import new_template, new_trace
from streamwatch.edge.decoders.scanner.tokens import MAX_TOKEN_BYTES, Tokens

_FEWEST: Final = 512
_SEPARATOR: Final = bytes((SEPARATOR,))


class Scanned(NamedTuple):
    """Rows and places that were read of some records."""

    rows: NDArray[np.void]
    """Of dtype `core.records.ROW`."""
    texts: NDArray[np.uint8] | None
    """Of the keys; None if they were not to be kept."""
    left: NDArray[np.int64]
    """Places of the records that somebody else has to read."""


class ColumnReader:
    """Reads the records of one topic.

    Parameters
    ----------
    plan
        Where contents are found.
    vocabulary
        Numbers names.
    keep_texts
        Whether the texts of keys are wanted, or their digests alone.
    """

    def __init__(self, plan: Plan, vocabulary: Vocabulary, *, keep_texts: bool) -> None:
        self._plan = plan
        self._vocabulary = vocabulary
        self._keep_texts = keep_texts
        contents = 1 + max(plan.fields.leaf.max(initial=-1), plan.key, plan.header_leaf.max(initial=-1))
        self._trace, self._template = new_trace(int(contents)), new_template()
        self._forget_names()
        self._text_bytes = len(plan.prefix) + MAX_ID_BYTES + 1
        self._make_room(_FEWEST)

    def _forget_names(self) -> None:
        self._version = self._vocabulary.version
        self._models, self._predictions, self._labels = Tokens(), Tokens(), Tokens()
        self._segments = Tokens()

    def _make_room(self, records: int) -> None:
        self._room = records
        self._texts = np.zeros(records * self._text_bytes + MAX_TOKEN_BYTES + PADDING, np.uint8)
        self._status = np.zeros(records, np.int8)
        named = 1 + len(self._plan.model) + len(self._plan.segments)
        self._spans = np.zeros((records, 2 * named), np.int64)

    def read(self, data: NDArray[np.uint8], fetched: NDArray[np.int64]) -> Scanned:
        """Read records, data and rows as of `FetchedRecords`; those that are not ordinary are `left`."""
        if self._version != self._vocabulary.version:  # a number may stand for another name by now
            self._forget_names()
        count = len(fetched)
        if count > self._room:
            self._make_room(2 * count)
        rows = np.zeros(count, ROW)
        tables = Tables(self._models.table, self._predictions.table, self._labels.table, self._segments.table)
        odd, used = scan(
            data,
            fetched,
            self._plan,
            tables,
            self._template,
            self._trace,
            rows,
            self._texts,
            self._status,
            self._spans,
            self._keep_texts,
        )
        left = np.flatnonzero(self._status[:count] != ORDINARY) if odd else np.empty(0, np.int64)
        return Scanned(rows, self._texts[:used].copy() if self._keep_texts else None, left)

    def learn(self, data: NDArray[np.uint8], place: int, event: Decoded) -> bool:
        """Remember the names of a record left by the last `read`, as somebody else understood them.

        Returns whether the record was left because of a new name: others with this name may be ordinary now.
        """
        if self._status[place] != NEW_NAME:
            return False
        spans: list[int] = self._spans[place].tolist()
        written = [data[start:stop].tobytes() for start, stop in zip(spans[::2], spans[1::2], strict=True)]
        models = len(self._plan.model)
        named, model, segments = written[0], _token(written[1 : 1 + models]), written[1 + models :]
        match event:
            case Prediction():
                self._learn(self._models, model, self._vocabulary.models.number(event.model))
                number = self._vocabulary.classes.number(event.predicted_class)
                self._learn(self._predictions, named, number)
                self._learn_segments(segments, event)
            case Label():
                if event.model is not None:
                    self._learn(self._models, model, self._vocabulary.models.number(event.model))
                self._learn(self._labels, named, self._vocabulary.classes.number(event.true_class))
            case NullRecord() | WrongFold() | Skipped() | Invalid() | EventGroup():
                pass  # they hold no names
        return True

    def _learn_segments(self, written: Sequence[bytes], event: Prediction) -> None:
        number = 0
        if event.segments:
            number = 1 + self._vocabulary.segments.number(segments_text(event.segments))
            if number == 0:  # there is none left
                return
        self._learn(self._segments, _together(written), number)

    @staticmethod
    def _learn(tokens: Tokens, token: bytes, number: int) -> None:
        if token and number >= 0:
            tokens.learn(token, number)


def _token(written: Sequence[bytes]) -> bytes:
    """Token of a name: its one content as written, or several together; none if it is the same for all."""
    return b"".join(written) if len(written) < 2 else _together(written)


def _together(written: Sequence[bytes]) -> bytes:
    return b"".join(each + _SEPARATOR for each in written)


@cache
def compile_reader() -> None:
    """Compile what reads records (seconds), or load it from the cache of compiled functions."""
    locations = {"id": InValue(("id",)), "label": InValue(("label",))}
    plan = plan_of("label", locations, {}, "ms", None, b"")
    assert plan is not None  # noqa: S101 - a mapping without anything special
    reader = ColumnReader(plan, Vocabulary(), keep_texts=True)
    nothing = np.zeros(PADDING, np.uint8)
    reader.read(nothing, np.zeros((0, COLUMNS), np.int64))
    Tokens().learn(b"name", 0)
    none = np.zeros(0, np.int64)
    gather_texts(nothing, none, none, nothing)
