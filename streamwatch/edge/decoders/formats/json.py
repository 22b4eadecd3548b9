"""JSON records → predictions and labels, through the topic's mapping; bad input is a value with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import msgspec

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Prediction, Side, WrongFold
from streamwatch.core.fold_names import fold_name
from streamwatch.core.ports import Record
from streamwatch.core.records import RecordBatch
from streamwatch.core.vocabulary import Vocabulary
from streamwatch.edge.decoders.batches import Batches
from streamwatch.edge.decoders.columns import PIECE, UNDECODED, Columns
from streamwatch.edge.decoders.field_locations import UNREADABLE, FieldLocations, is_framed
from streamwatch.edge.decoders.fields import (
    canonical_text,
    is_plain,
    probability,
    timestamp_ms,
)
from streamwatch.edge.decoders.folds import fold_tests, judged_fold
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatOptions
from streamwatch.edge.decoders.mapping import TimestampUnit, TopicMapping
from streamwatch.edge.decoders.names import Names, judged
from streamwatch.edge.decoders.paths import Row
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

_PREDICTION = ("id", "model", "prediction", "timestamp", "scores", "fold")
_LABEL = ("id", "model", "label", "timestamp")
_SLOTS = {"prediction": _PREDICTION, "label": _LABEL, "both": (*_PREDICTION, "label", "kind")}
_SYNTAX = msgspec.json.Decoder(msgspec.Raw)


MAX_SCORES = 4_096
"""Scores of a record: each is looked at, which takes a microsecond or two."""


class JsonDecoder:
    """Decodes the records of one topic. Never raises on bad input.

    Parameters
    ----------
    topic
        The topic's name (a mapping may use it as a field).
    side
        What the topic carries; `both` needs a `kind` rule in the mapping.
    mapping
        Where each field lives.
    keys
        What valid ids are known as from here on (as keys of a state on disk), if not as they are.
    vocabulary
        Numbers the names in batches; one for all topics of a sequence.
    folds
        Which fold tests which id; without it, predictions with a fold are invalid.

    Raises
    ------
    ValueError
        A place is not in the notation, a constant or alias is no valid name, or `both` came without a rule.
    """

    def __init__(
        self,
        topic: str,
        side: Side,
        mapping: TopicMapping,
        keys: IdKeys | None = None,
        vocabulary: Vocabulary | None = None,
        folds: Scheme | None = None,
    ) -> None:
        if side == "both" and mapping.kind is None:
            raise ValueError(f"topic {topic!r} carries predictions and labels: expected a kind rule")
        for name in mapping.classes.values():
            if not is_plain(name):
                raise ValueError(f"a class must be 1 to 128 bytes without control characters, got {name!r}")
        self._side: Side = side
        self._keys = keys
        self._folds = folds
        self._kind = mapping.kind
        self._slots = _SLOTS[side]
        self._locations = FieldLocations(topic, mapping, self._slots)
        self._strict = self._locations.paths.strict or _refuse
        self._row = self._locations.paths.getter(self._slots)
        self._unit: TimestampUnit = mapping.timestamp_unit
        self._models = Names({}, "invalid_model")
        self._classes = Names(mapping.classes, "invalid_class")
        self._at_once: Callable[[Sequence[Record], Sequence[int]], Sequence[Event] | None] | None = None
        if self._locations.paths.flat and not self._locations.outside and side != "both":
            columns = Columns(
                self._strict,
                self._models,
                self._classes,
                self._scores,
                milliseconds=mapping.timestamp_unit == "ms",
                keys=keys,
            )
            self._at_once = columns.predictions if side == "prediction" else columns.labels
        self._batches = Batches(topic, side, mapping, self._locations.by_slot, keys, vocabulary)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records into columns; events of records that are out of the ordinary are objects."""
        return self._batches.decode(records, self.decode_all)

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Event]:
        """Decode each record with its stamp, as `decode` does."""
        if self._at_once is None:
            return list(map(self.decode, records, stamps))
        events: list[Event] = []
        for start in range(0, len(records), PIECE):
            piece, times = records[start : start + PIECE], stamps[start : start + PIECE]
            events += self._at_once(piece, times) or map(self.decode, piece, times)
        return events

    def decode(self, record: Record, record_ms: int) -> Event:
        """`Prediction`, `WrongFold`, `Label`, `NullRecord`; else `Invalid` with one of `reasons.REASONS`."""
        value = record.value
        if value is None:
            return self._unread(record, record.fault) if record.fault else self._null(record, record_ms)
        try:
            row = self._row(self._strict(value))
        except UNDECODED:
            verdict = self._reluctantly(value)
            if isinstance(verdict, str):
                return self._unread(record, verdict)
            row = verdict
        return self._event(self._locations.completed(row, record), record, record_ms)

    def _event(self, row: Row, record: Record, record_ms: int) -> Event:
        side: Side | None = self._side
        if side == "both":
            *shared, label, kind = row
            side = self._side_of(kind)
            row = (shared[0], shared[1], label, shared[3]) if side == "label" else tuple(shared)
        if side is None:
            return self._invalid(record, "unknown_kind", row[1])
        return (self._prediction if side == "prediction" else self._label)(row, record, record_ms)

    def _prediction(self, row: Row, record: Record, record_ms: int) -> Event:
        id_, model, shown, stamp, scores, fold = row
        name = predicted_class = ""
        id_, reason = judged(id_, "missing_id", "invalid_id")
        if not reason:
            name, reason = self._models.judged(model, "missing_model")
        if not reason:
            predicted_class, reason = self._classes.judged(shown, "missing_prediction")
        if not reason and stamp is not None:
            stamp = timestamp_ms(stamp, self._unit)
            reason = "invalid_timestamp" if stamp is None else ""
        if not reason and scores is not None:
            scores = self._scores(scores)
            reason = "invalid_scores" if scores is None else ""
        number = -1
        if not reason and fold is not None:
            number, reason = judged_fold(fold, self._folds)
        if reason:
            return self._invalid(record, reason, model)
        if number >= 0:
            if not fold_tests(id_, number, self._folds):
                return WrongFold(record_ms)
            name = fold_name(name, number)
        return Prediction(self._key(id_), name, predicted_class, record_ms, stamp, scores)

    def _label(self, row: Row, record: Record, record_ms: int) -> Event:
        id_, model, shown, stamp = row
        name: str | None = None
        true_class = ""
        id_, reason = judged(id_, "missing_id", "invalid_id")
        if not reason and model is not None:
            name, reason = self._models.judged(model, "missing_model")
        if not reason:
            true_class, reason = self._classes.judged(shown, "missing_label")
        if not reason and stamp is not None:
            stamp = timestamp_ms(stamp, self._unit)
            reason = "invalid_timestamp" if stamp is None else ""
        if reason:
            return self._invalid(record, reason, model)
        return Label(self._key(id_), true_class, record_ms, name, stamp)

    def _key(self, id_: str) -> str:
        return id_ if self._keys is None else self._keys((id_,))[0]

    def _side_of(self, kind: Any) -> Side | None:
        """Apply the kind rule to one record."""
        text = canonical_text(kind)
        if self._kind is None or text is None:
            return None
        if text == self._kind.prediction:
            return "prediction"
        return "label" if text == self._kind.label else None

    def _null(self, record: Record, record_ms: int) -> Event:
        """A null value; on a topic of both kinds it withdraws only where key or headers say what it is."""
        row = self._locations.completed(self._locations.constants, record)
        found = dict(zip(self._slots, row, strict=True))
        side = self._side_of(found["kind"]) if self._side == "both" else self._side
        id_: str | None = None
        model: str | None = None
        reason = ""
        if found["id"] is not None:
            id_, reason = judged(found["id"], "missing_id", "invalid_id")
        if found["model"] is not None and not reason:
            model, reason = self._models.judged(found["model"], "missing_model")
        if reason:
            return self._invalid(record, reason, found["model"])
        return NullRecord(
            record.topic,
            None if id_ is None else self._key(id_),
            model,
            record_ms,
            withdraws=side == "prediction",
        )

    def _unread(self, record: Record, reason: str) -> Invalid:
        """An invalid record whose value cannot be read; key, headers or the mapping may name its model."""
        row = self._locations.completed(self._locations.constants, record)
        return self._invalid(record, reason, row[self._slots.index("model")])

    def _invalid(self, record: Record, reason: str, model: Any) -> Invalid:
        name, wrong = self._models.judged(model, "missing_model")
        return Invalid(record.topic, record.partition, record.offset, reason, model=None if wrong else name)

    def _reluctantly(self, value: bytes) -> Row | str:
        """The contents of a value that the strict reader refused, or the reason why it has none."""
        if is_framed(value):
            return "schema_registry_framing"
        try:
            if not bytes(_SYNTAX.decode(value)).lstrip().startswith(b"{"):
                return "not_an_object"
            contents = self._locations.paths.lax(value)
        except UnicodeDecodeError:
            return "invalid_utf8"
        except (msgspec.DecodeError, RecursionError):
            return "invalid_json" if _is_utf8(value) else "invalid_utf8"
        for slot, content in contents.items():
            if slot != "scores" and isinstance(content, dict | list):
                contents[slot] = UNREADABLE
        return tuple(contents[slot] for slot in self._slots)

    def _scores(self, raw: Any) -> dict[str, float] | None:
        """Probabilities by class; classes that are aliases of one another add up."""
        if not isinstance(raw, dict) or len(raw) > MAX_SCORES:
            return None
        scores: dict[str, float] = {}
        for shown, number in raw.items():
            name, reason = self._classes.judged(shown, "invalid_scores")
            value = probability(number)
            if reason or value is None:
                return None
            scores[name] = scores.get(name, 0.0) + value
        return scores


def _refuse(_value: bytes) -> NoReturn:
    """Stands in for a strict reader where paths overlap."""
    raise AttributeError


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def build(spec: DecoderSpec, options: FormatOptions) -> JsonDecoder:
    """Decode JSON."""
    del options
    return JsonDecoder(spec.topic, spec.side, spec.mapping, spec.keys, spec.vocabulary, spec.folds)


KIND = FormatKind("json", (), build)
