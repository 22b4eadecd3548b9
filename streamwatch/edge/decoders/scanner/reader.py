"""Runs the compiled loop over fetched records, and fills its tables of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.batch import (
    NO_ELEMENTS,
    ROW,
    SEPARATOR,
    RecordBatch,
    RecordElements,
    gather_texts,
    rows_of,
    words_of,
)
from streamwatch.core.records.events import (
    Decoded,
    Event,
    EventGroup,
    Invalid,
    Label,
    NullRecord,
    Prediction,
    Skipped,
    WrongFold,
    samplings_of,
    segments_text,
)
from streamwatch.core.records.fetched import COLUMNS, PADDING, VALUE_BYTES
from streamwatch.core.records.scores import NO_LISTS, ScoreLists
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.fields import slot_locations
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.scanner.contents import (
    MAX_ID_BYTES,
    MAX_SCORES,
    REQUESTED,
    SCORE_BYTES,
    ScoreRoom,
)
from streamwatch.edge.decoders.scanner.plan import Plan, Tables, plan_of, score_rules
from streamwatch.edge.decoders.scanner.scan import NEW_NAME, ORDINARY, scan
from streamwatch.edge.decoders.scanner.shape import MAX_ELEMENTS, new_template, new_trace
from streamwatch.edge.decoders.scanner.tokens import MAX_TOKEN_BYTES, Tokens

_FEWEST: Final = 512
_SEPARATOR: Final = bytes((SEPARATOR,))
_MOST_KEPT: Final = 1 << 16
"""Elements for which room is kept between readings; more are rare."""
_ELEMENT_BYTES: Final = 2
"""Least bytes of an element: a digit and a comma."""
_NAMES: Final = msgspec.json.Decoder(dict[str, Any])


class Scanned(NamedTuple):
    """Result of a reading: rows of all records, and which records were left."""

    batch: RecordBatch
    """A row for each record."""
    left: NDArray[np.int64]
    """Indices of the records that were left; their rows hold only offset and record time."""


class _ListRoom(NamedTuple):
    """Columns of `ScoreLists` to be filled, one entry for each event with scores or a sampled label."""

    ends: NDArray[np.int64]
    sampling: NDArray[np.int64]
    """How the label is sampled, as `sampling_at` encodes it."""


class ColumnReader:
    """Reads the records of one topic to rows.

    Parameters
    ----------
    plan
        The topic's plan.
    vocabulary
        Numbers of names.
    keep_texts
        Whether batches have the texts of keys, or only their digests.
    aliases
        Name of a class in scores → the class meant.
    """

    def __init__(
        self, plan: Plan, vocabulary: Vocabulary, aliases: Mapping[str, str], *, keep_texts: bool
    ) -> None:
        self._plan = plan
        self._vocabulary = vocabulary
        self._aliases = aliases
        self._marks = np.zeros(0, np.int64)
        self._before = np.zeros((MAX_SCORES, 4), np.int64)
        self._state = np.zeros(6, np.int64)
        self._score_spans = np.zeros((MAX_ELEMENTS if plan.fields.width else 1, 2), np.int64)
        self._folded = plan.fold >= 0
        names = 2 + len(plan.model) + self._folded + len(plan.segments)
        self._no_spans = np.zeros((0, 2 * names), np.int64)
        self._keep_texts = keep_texts
        fields, arrays = plan.fields, int(plan.fields.array.max()) + 1
        self._trace = new_trace(fields.shared + fields.width, fields.width, arrays)
        self._template = new_template(arrays)
        self._forget_names()
        self._text_bytes = len(plan.prefix) + MAX_ID_BYTES + 8
        self._room = self._events = 0
        self._make_room(_FEWEST, 4 * _FEWEST if arrays else 0)

    @property
    def reads_headers(self) -> bool:
        """Tell whether a header is mapped."""
        return len(self._plan.header_leaf) > 0

    def _forget_names(self) -> None:
        self._version = self._vocabulary.version
        self._models, self._predictions, self._labels = Tokens(), Tokens(), Tokens()
        self._folds, self._segments = Tokens(), Tokens()

    def _make_room(self, records: int, elements: int) -> None:
        """Allocate arrays for a number of records, and of events in records with several; copy those read."""
        keys = max(records, elements) if self._keep_texts else 1
        texts = np.zeros(keys * self._text_bytes + MAX_TOKEN_BYTES + PADDING, np.uint8)
        inner = np.zeros(elements, ROW)
        if self._events:  # a reading is under way
            texts[: len(self._texts)] = self._texts
            words_of(inner)[: self._events] = words_of(self._elements)[: self._events]
        self._texts, self._elements = texts, inner
        if records > self._room:
            self._room = records
            self._status = np.zeros(records, np.int8)
            self._ends = np.zeros(records if elements else 0, np.int64)

    def read(self, data: NDArray[np.uint8], fetched: NDArray[np.int64]) -> Scanned:
        """Read `data` and `rows` of `FetchedRecords`; unusual records, and those with new names, are left."""
        if self._version != self._vocabulary.version:  # numbers may have been given to other names
            self._forget_names()
        count = len(fetched)
        if count > self._room:
            self._make_room(2 * count, max(len(self._elements), 2 * count if len(self._elements) else 0))
        rows, status = np.zeros(count, ROW), self._status
        room, lists = self._score_room(fetched)
        odd, used, inner, several = self._scan(data, fetched, room, lists, rows, status, self._no_spans)
        left = np.flatnonzero(status[:count] != ORDINARY) if odd else np.empty(0, np.int64)
        texts = self._texts[:used].copy() if self._keep_texts else None
        elements = NO_ELEMENTS
        if several:
            found = rows_of(words_of(self._elements)[:inner].copy())
            elements = RecordElements(self._ends[:several].copy(), found, np.zeros(several, np.int64))
        if len(self._elements) > _MOST_KEPT:
            self._make_room(self._room, 4 * self._room)
        scores = _written(room, lists)
        return Scanned(RecordBatch(rows, texts, (), self._vocabulary, (), scores, elements), left)

    def _scan(
        self,
        data: NDArray[np.uint8],
        fetched: NDArray[np.int64],
        room: ScoreRoom,
        lists: _ListRoom,
        rows: NDArray[np.void],
        status: NDArray[np.int8],
        spans: NDArray[np.int64],
    ) -> tuple[int, int, int, int]:
        """Run `scan`, with more room for elements as needed; return `progress` without the first number."""
        known = self._models, self._folds, self._predictions, self._labels, self._segments
        tables = Tables(*(tokens.table for tokens in known))
        progress = np.zeros(5, np.int64)
        while True:
            scan(
                data,
                fetched,
                self._plan,
                tables,
                self._template,
                self._trace,
                room,
                self._marks,
                lists.ends,
                lists.sampling,
                rows,
                self._elements,
                self._ends,
                self._texts,
                status,
                spans,
                progress,
                self._keep_texts,
            )
            first, odd, used, inner, several = progress.tolist()
            if first == len(fetched):
                self._events = 0
                return odd, used, inner, several
            self._events = max(inner, 1)
            self._make_room(self._room, 2 * len(self._elements) + MAX_ELEMENTS)

    def _score_room(self, fetched: NDArray[np.int64]) -> tuple[ScoreRoom, _ListRoom]:
        """Allocate room for the most scores that records may have; what is not written takes no memory."""
        plan, known = self._plan, len(self._vocabulary.classes.names)
        if known > len(self._marks):
            self._marks = np.zeros(2 * known, np.int64)
        events, most, size_bytes = len(fetched), 0, int(np.maximum(fetched[:, VALUE_BYTES], 0).sum())
        if plan.fields.width:
            events += size_bytes // _ELEMENT_BYTES
        if plan.of_predictions.probability:
            most += 2 * events
        if plan.fields.scored >= 0:
            most += size_bytes // SCORE_BYTES
        self._state[[0, 1, 2, 3, 5]] = 0
        classes, values, names = np.empty(most, np.int32), np.empty(most), np.empty(most, np.int64)
        room = ScoreRoom(classes, values, self._state, self._score_spans, self._before, names)
        lists = events if most or plan.label_probability >= 0 else 0
        return room, _ListRoom(np.empty(lists, np.int64), np.empty(lists, np.int64))

    def learn(
        self, data: NDArray[np.uint8], fetched: NDArray[np.int64], index: int, decoded: Decoded
    ) -> bool:
        """Remember the names of a record that the last `read` left, as it was decoded elsewhere.

        Parameters
        ----------
        data, fetched
            `data` and `rows` of `FetchedRecords`, of this record only.
        index
            Index of the record in the last `read`.
        decoded
            Its events.

        Returns
        -------
        is_new
            Whether the record was left because of a new name: other records with it may now be read.
        """
        if self._status[index] != NEW_NAME:
            return False
        events = decoded.events if isinstance(decoded, EventGroup) else (decoded,)
        for event, spans in zip(events, self._spans_of_names(data, fetched, len(events)), strict=False):
            self._learn_event([data[start:stop].tobytes() for start, stop in spans], event)
        return True

    def _spans_of_names(
        self, data: NDArray[np.uint8], fetched: NDArray[np.int64], events: int
    ) -> list[list[list[int]]]:
        """Return, for each event, [start, end] of its class, the model's parts, fold, segments and scores."""
        spans = np.zeros((MAX_ELEMENTS if self._plan.fields.width else 1, self._no_spans.shape[1]), np.int64)
        room, lists = self._score_room(fetched)
        rows, status = np.zeros(1, ROW), np.zeros(1, np.int8)
        self._scan(data, fetched, room, lists, rows, status, spans)
        return spans[:events].reshape(events, -1, 2).tolist()

    def _learn_event(self, written: Sequence[bytes], event: Event) -> None:
        """Remember the names of an event, given the bytes in the order of `_spans_of_names`."""
        behind = 1 + len(self._plan.model)
        named, parts, fold = written[0], written[1:behind], written[behind] if self._folded else b""
        model, segments = _token(parts), written[behind + self._folded : -1]
        match event:
            case Prediction():
                names, token = (self._folds, _together([*parts, fold])) if fold else (self._models, model)
                self._learn(names, token, self._vocabulary.models.number(event.model))
                number = self._vocabulary.classes.number(event.predicted_class)
                self._learn(self._predictions, named, number)
                self._learn_segments(segments, event)
                self._learn_classes(written[-1])
            case Label():
                if event.model is not None:
                    self._learn(self._models, model, self._vocabulary.models.number(event.model))
                self._learn(self._labels, named, self._vocabulary.classes.number(event.true_class))
            case NullRecord() | WrongFold() | Skipped() | Invalid():
                pass  # these have no names

    def _learn_segments(self, written: Sequence[bytes], event: Prediction) -> None:
        number = 0
        if event.segments:
            number = 1 + self._vocabulary.segments.number(segments_text(event.segments))
            if number == 0:  # the vocabulary is full
                return
        self._learn(self._segments, _together(written), number)

    def _learn_classes(self, scores: bytes) -> None:
        """Remember the names of classes in an object of scores; classes of an array are in the mapping."""
        if not scores.startswith(b"{"):
            return
        for name in _NAMES.decode(scores):
            number = self._vocabulary.classes.number(self._aliases.get(name, name))
            self._learn(self._predictions, f'"{name}"'.encode(), number)

    @staticmethod
    def _learn(tokens: Tokens, token: bytes, number: int) -> None:
        if token and number >= 0:
            tokens.learn(token, number)


def _written(room: ScoreRoom, lists: _ListRoom) -> ScoreLists:
    """Copy the scores of events out of their room."""
    scores, _, _, records, _, _ = room.state.tolist()
    if not records:
        return NO_LISTS
    classes, values = room.classes[:scores].copy(), room.values[:scores].copy()
    sampling = lists.sampling[:records]
    sampled = samplings_of(sampling & (1 << REQUESTED) - 1, sampling >> REQUESTED)
    return ScoreLists(lists.ends[:records].copy(), classes, values, sampled)


def _token(written: Sequence[bytes]) -> bytes:
    """Return the token of a name: its content, or several joined; empty for a name that is constant."""
    return b"".join(written) if len(written) < 2 else _together(written)


def _together(written: Sequence[bytes]) -> bytes:
    return b"".join(each + _SEPARATOR for each in written)


@cache
def compile_reader() -> None:
    """Compile `scan` (takes seconds), or load it from the cache of compiled functions."""
    mapping = TopicMapping()
    rules = score_rules(mapping, lambda _: 0)
    plan = plan_of(
        "label", mapping, slot_locations(mapping, "label"), {}, b"", rules=rules, reads_folds=False
    )
    assert plan is not None  # noqa: S101 - the default mapping has one
    reader = ColumnReader(plan, Vocabulary(), {}, keep_texts=True)
    nothing = np.zeros(PADDING, np.uint8)
    reader.read(nothing, np.zeros((0, COLUMNS), np.int64))
    Tokens().learn(b"name", 0)
    none = np.zeros(0, np.int64)
    gather_texts(nothing, none, none, nothing)
