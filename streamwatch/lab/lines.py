"""What one recorded line holds: a prediction, a label, or with both an outcome.

The rules for each field are those of records on a topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import msgspec

from streamwatch.core.events import Label, Outcome, Prediction
from streamwatch.edge.decoders.fields import canonical_text, fold_index, probability, timestamp_ms
from streamwatch.edge.decoders.mapping import TimestampUnit


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be used; `number` counts from 1, the header included."""

    number: int
    reason: str


Recorded: TypeAlias = Prediction | Label | Outcome | BadLine


class LineFields(msgspec.Struct, gc=False):
    """The fields by their default names, as JSON or CSV gave them; None where absent."""

    id: Any = None
    model: Any = None
    prediction: Any = None
    label: Any = None
    timestamp: Any = None
    scores: Any = None
    fold: Any = None


class LineError(ValueError):
    """Why a line cannot be used, in one word."""


def time_of(fields: LineFields, unit: TimestampUnit) -> int | None:
    """The line's own time in milliseconds, or None without one.

    Raises
    ------
    LineError
        It has one that is not a time in this unit.
    """
    if fields.timestamp is None:
        return None
    if (stamp := timestamp_ms(fields.timestamp, unit)) is None:
        raise LineError("invalid_timestamp")
    return stamp


def recorded(fields: LineFields, stamp: int | None, at_ms: int) -> Prediction | Label | Outcome:
    """What the line says happened; `stamp` is its own time, `at_ms` its record time.

    Raises
    ------
    LineError
        A field is missing or breaks a rule.
    """
    if fields.id is None:
        raise LineError("missing_id")
    name = _text(fields.id, "invalid_id")
    model = None if fields.model is None else _text(fields.model, "invalid_model")
    truth = None if fields.label is None else _text(fields.label, "invalid_class")
    if fields.prediction is None:
        if truth is None:
            raise LineError("neither_prediction_nor_label")
        return Label(name, truth, at_ms, model, stamp)
    if model is None:
        raise LineError("missing_model")
    predicted = _text(fields.prediction, "invalid_class")
    scores = None if fields.scores is None else _scores(fields.scores)
    fold = None if fields.fold is None else fold_index(fields.fold)
    if fold is None and fields.fold is not None:
        raise LineError("invalid_fold")
    if truth is None:
        return Prediction(name, model, predicted, at_ms, stamp, scores, fold)
    return Outcome(model, truth, predicted, at_ms if stamp is None else stamp, 0, scores=scores)


def _text(raw: Any, reason: str) -> str:
    text = canonical_text(raw)
    if text is None:
        raise LineError(reason)
    return text


def _scores(raw: Any) -> dict[str, float]:
    """Class → probability; CSV carries them as a JSON object."""
    if isinstance(raw, str):
        try:
            raw = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise LineError("invalid_scores") from error
    if not isinstance(raw, Mapping):
        raise LineError("invalid_scores")
    scores: dict[str, float] = {}
    for key, share in cast("Mapping[str, Any]", raw).items():
        name, value = canonical_text(key), probability(share)
        if name is None or value is None:
            raise LineError("invalid_scores")
        scores[name] = value
    return scores
