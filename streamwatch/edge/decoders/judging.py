"""What the contents of a record make of it, wherever they were found: an event, or a reason against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Prediction, Side, WrongFold
from streamwatch.core.fold_names import fold_name
from streamwatch.core.ports import Record
from streamwatch.edge.decoders.class_rules import MAX_SCORES, ByLargest, ByThreshold, by_class, class_rule
from streamwatch.edge.decoders.fields import NAME, canonical_text, is_name, probability, timestamp_ms
from streamwatch.edge.decoders.folds import fold_tests, judged_fold
from streamwatch.edge.decoders.mapping import ScoreArray, TimestampUnit, TopicMapping
from streamwatch.edge.decoders.names import Names, judged
from streamwatch.edge.decoders.paths import Row
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

PREDICTION_SLOTS: Final = ("id", "model", "prediction", "timestamp", "scores", "fold")
LABEL_SLOTS: Final = ("id", "model", "label", "timestamp")
"""Fields of a mapping in the order of a row."""
SLOTS: Final[Mapping[Side, Sequence[str]]] = MappingProxyType(
    {
        "prediction": PREDICTION_SLOTS,
        "label": LABEL_SLOTS,
        "both": (*PREDICTION_SLOTS, "label", "kind"),
    }
)
"""Fields by what a topic carries."""


class Judge:
    """Judges rows, the contents of a mapping's fields; remembers the names that were found valid.

    Parameters
    ----------
    mapping
        Aliases of classes, and the unit of timestamps.
    keys
        What valid ids are known as from here on, if not as they are.
    folds
        Which fold tests which id; without it, predictions with a fold are invalid.

    Raises
    ------
    ValueError
        An alias, or a class that the mapping names, is no valid name.
    """

    def __init__(self, mapping: TopicMapping, keys: IdKeys | None, folds: Scheme | None) -> None:
        for name in mapping.classes.values():
            if not is_name(name):
                raise ValueError(f"a class must be {NAME}, got {name!r}")
        self._keys = keys
        self._folds = folds
        self._unit: TimestampUnit = mapping.timestamp_unit
        self.models = Names({}, "invalid_model")
        self.classes = Names(mapping.classes, "invalid_class")
        self._predicted = class_rule(mapping.prediction, self.classes)
        self._true = class_rule(mapping.label, self.classes)
        self._segments = tuple(mapping.segments)
        self._score_classes = mapping.scores.classes if isinstance(mapping.scores, ScoreArray) else None

    def take_tied(self) -> int:
        """Count the predictions since the last call whose largest score was that of several classes."""
        return self._predicted.take_tied() if isinstance(self._predicted, ByLargest) else 0

    def prediction(self, row: Row, record: Record, record_ms: int) -> Event:
        """Judge the contents of `PREDICTION_SLOTS`, and behind them those of the segments."""
        id_, model, shown, stamp, scores, fold, *parts = row
        name = predicted_class = ""
        id_, reason = judged(id_, "missing_id", "invalid_id")
        if not reason:
            name, reason = self.models.judged(model, "missing_model")
        if not reason:
            predicted_class, reason = self._predicted(shown, "missing_prediction")
        if not reason and stamp is not None:
            stamp = timestamp_ms(stamp, self._unit)
            reason = "invalid_timestamp" if stamp is None else ""
        if not reason and scores is not None:
            scores = self.scores(scores)
            reason = "invalid_scores" if scores is None else ""
        elif not reason and isinstance(self._predicted, ByThreshold):
            scores = self._predicted.scores(shown)
        segments: dict[str, str] | None = None
        if not reason and parts:
            segments, reason = self._segments_of(parts)
        number = -1
        if not reason and fold is not None:
            number, reason = judged_fold(fold, self._folds)
        if reason:
            return self.invalid(record, reason, model)
        if number >= 0:
            if not fold_tests(id_, number, self._folds):
                return WrongFold(record_ms)
            name = fold_name(name, number)
        return Prediction(self.key(id_), name, predicted_class, record_ms, stamp, scores, segments)

    def label(self, row: Row, record: Record, record_ms: int) -> Event:
        """Judge the contents of `LABEL_SLOTS`."""
        id_, model, shown, stamp = row
        name: str | None = None
        true_class = ""
        id_, reason = judged(id_, "missing_id", "invalid_id")
        if not reason and model is not None:
            name, reason = self.models.judged(model, "missing_model")
        if not reason:
            true_class, reason = self._true(shown, "missing_label")
        if not reason and stamp is not None:
            stamp = timestamp_ms(stamp, self._unit)
            reason = "invalid_timestamp" if stamp is None else ""
        if reason:
            return self.invalid(record, reason, model)
        return Label(self.key(id_), true_class, record_ms, name, stamp)

    def key(self, id_: str) -> str:
        """Give what an id is known as."""
        return id_ if self._keys is None else self._keys((id_,))[0]

    def null(
        self, record: Record, record_ms: int, id_: Any, model: Any, *, withdraws: bool
    ) -> NullRecord | Invalid:
        """A record without a value, with what else tells its id and model; None where nothing does."""
        name: str | None = None
        reason = ""
        if id_ is not None:
            id_, reason = judged(id_, "missing_id", "invalid_id")
        if model is not None and not reason:
            name, reason = self.models.judged(model, "missing_model")
        if reason:
            return self.invalid(record, reason, model)
        key = None if id_ is None else self.key(id_)
        return NullRecord(record.topic, key, name, record_ms, withdraws=withdraws)

    def invalid(self, record: Record, reason: str, model: Any) -> Invalid:
        """An invalid record, with its model if that is a valid name."""
        name, wrong = self.models.judged(model, "missing_model")
        return Invalid(record.topic, record.partition, record.offset, reason, model=None if wrong else name)

    def _segments_of(self, parts: Sequence[Any]) -> tuple[dict[str, str] | None, str]:
        """Values of the segments that are there, by name, None without any; or the reason against them."""
        segments: dict[str, str] = {}
        for name, raw in zip(self._segments, parts, strict=True):
            if raw is None:
                continue
            value = canonical_text(raw)
            if value is None:
                return None, "invalid_segment"
            segments[name] = value
        return segments or None, ""

    def scores(self, raw: Any) -> dict[str, float] | None:
        """Probabilities by class; classes that are aliases of one another add up."""
        if self._score_classes is not None:
            raw = by_class(raw, self._score_classes)
        if not isinstance(raw, dict) or len(raw) > MAX_SCORES:
            return None
        scores: dict[str, float] = {}
        for shown, number in raw.items():
            name, reason = self.classes.judged(shown, "invalid_scores")
            value = probability(number)
            if reason or value is None:
                return None
            scores[name] = scores.get(name, 0.0) + value
        return scores
