"""Events as columns, written field by field, as a decoder would give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from streamwatch.core.records.batch import LABEL, OBJECT, PREDICTION, ROW, SEPARATOR, RecordBatch
from streamwatch.core.records.events import Event, Label, Prediction, sampling_of, segments_text
from streamwatch.core.records.scores import lists_of
from streamwatch.core.records.vocabulary import NO_NAME, Vocabulary
from streamwatch.edge.keys import digest_bytes


def in_columns(
    events: Sequence[Event],
    vocabulary: Vocabulary,
    *,
    digests: bool,
    digest: Callable[[Sequence[str]], bytes] = digest_bytes,
    as_object: Callable[[Event], bool] = lambda _: False,
) -> RecordBatch:
    """The batch that a decoder would make of events.

    Parameters
    ----------
    digests
        Whether keys are their digests already, so that there are no texts of them.
    digest
        Makes digests of keys that are texts.
    as_object
        Whether an event is left as it is although a row could say it.
    """
    rows, objects, texts = np.zeros(len(events), ROW), [], bytearray()
    scores, sampling = [], []
    topics = list(dict.fromkeys(["", *(getattr(event, "topic", "") for event in events)]))
    for row, event in zip(rows, events, strict=True):
        row["record_ms"], row["topic"] = event.record_ms, topics.index(getattr(event, "topic", ""))
        if as_object(event) or not _is_plain(event, vocabulary):
            row["side"], row["object"], row["model"], row["class"] = OBJECT, len(objects), -1, -1
            objects.append(event)
            continue
        assert isinstance(event, Prediction | Label)
        named = event.predicted_class if isinstance(event, Prediction) else event.true_class
        row["side"] = PREDICTION if isinstance(event, Prediction) else LABEL
        row["model"] = -1 if event.model is None else vocabulary.models.number(event.model)
        row["class"], row["object"] = vocabulary.classes.number(named), -1
        if isinstance(event, Prediction) and (event.scores or event.label_probability is not None):
            row["object"] = len(scores)
            number = vocabulary.classes.number
            scores.append({number(name): score for name, score in (event.scores or {}).items()})
            sampling.append(sampling_of(event.label_probability, event.label_requested))
        if isinstance(event, Prediction) and event.segments:
            row["segments"] = 1 + vocabulary.segments.number(segments_text(event.segments))
        row["timestamp_ms"] = -1 if event.timestamp_ms is None else event.timestamp_ms
        key = event.id.encode("latin-1") if digests else digest([event.id])
        row["id_high"], row["id_low"] = np.frombuffer(key, ">u8")
        if not digests:
            row["id_at"], row["id_bytes"] = len(texts), len(event.id)
            texts += event.id.encode() + bytes([SEPARATOR])
    kept = None if digests else np.frombuffer(bytes(texts), np.uint8).copy()
    return RecordBatch(rows, kept, objects, vocabulary, topics, lists_of(scores, sampling))


def _is_plain(event: Event, vocabulary: Vocabulary) -> bool:
    """Whether a row can say it: a prediction or label of names that have numbers."""
    if not isinstance(event, Prediction | Label):
        return False
    scores = event.scores if isinstance(event, Prediction) else None
    if scores == {} or any(vocabulary.classes.number(name) == NO_NAME for name in scores or ()):
        return False
    if event.timestamp_ms is not None and event.timestamp_ms < 0:
        return False
    segments = event.segments if isinstance(event, Prediction) else None
    if segments and vocabulary.segments.number(segments_text(segments)) == NO_NAME:
        return False
    named = event.predicted_class if isinstance(event, Prediction) else event.true_class
    numbered = event.model is None or vocabulary.models.number(event.model) != NO_NAME
    return numbered and vocabulary.classes.number(named) != NO_NAME
