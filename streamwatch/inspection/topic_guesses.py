"""Guessed mapping of a topic, made from a pairing of predictions and labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streamwatch.edge.decoders.mapping import TimestampUnit, Trimmed
from streamwatch.inspection.classes import ClassPair
from streamwatch.inspection.fields import key_of
from streamwatch.inspection.guessed import Choice, Numbers, ScoreChoice, TopicGuess, confidence
from streamwatch.inspection.ids import IdPair, Pairing, joined_rows
from streamwatch.inspection.mappings import ALWAYS, condition
from streamwatch.inspection.models import joined_names, model_locations, model_name
from streamwatch.inspection.streams import EACH, KEY, Stream
from streamwatch.inspection.times import moments, stamps
from streamwatch.inspection.words import words

COPIED = 0.9
"""Share of joined records with equal times above which a label's time is a copy of its prediction's."""
FILLED_LABEL = 0.98
"""Least share of labels that name a model for the mapping to use it."""


def prediction_guess(pairing: Pairing) -> TopicGuess:
    """Make the mapping of a topic of predictions."""
    stream, ids = pairing.predictions, pairing.ids[0]
    scored = None if pairing.is_sound else pairing.scored
    largest: Numbers | None = None
    threshold: str | None = None
    if scored is None:
        prediction = _class_choice(pairing.classes, label=False)
        if pairing.classes[0].largest is not None:
            largest = Numbers(prediction.location, pairing.classes[0].largest)
    else:
        threshold = threshold_of(stream, scored.score)
        why = f"a score, higher where {scored.above} is true in {scored.area:.0%} of pairs"
        why += "; 0.5 is a guess" if threshold is None else f"; {threshold} has its threshold"
        prediction = Choice(scored.score, why, 0.5)
    taken = {*stream.composites.get(ids.left, (ids.left,)), prediction.location}
    timestamp, unit = _timestamp(stream, taken)
    when = _when(stream, prediction.location) if scored is None else {}
    return TopicGuess(
        stream.topic,
        "prediction",
        _id_choice(pairing, label=False),
        _model(stream, ids.left, taken),
        prediction,
        None
        if scored is None
        else ScoreChoice(0.5 if threshold is None else threshold, scored.above, scored.below),
        None,
        timestamp,
        unit,
        _scores(pairing, largest),
        has_fold_field="value.fold" in stream.columns,
        optional=scored is None and not when and stream.filled(prediction.location) < ALWAYS,
        largest=largest,
        when=when,
    )


def label_guess(pairing: Pairing) -> TopicGuess:
    """Make the mapping of a topic of labels."""
    stream, ids = pairing.labels, pairing.ids[0]
    scored = None if pairing.is_sound else pairing.scored
    if scored is None:
        label = _class_choice(pairing.classes, label=True)
    else:
        label = Choice(scored.label, f"{scored.above} where the score is high", 0.7)
    copies = _copies(pairing)
    timestamp, unit = _timestamp(stream, {ids.right, label.location, *copies})
    when = _when(stream, label.location)
    return TopicGuess(
        stream.topic,
        "label",
        _id_choice(pairing, label=True),
        label_model(pairing, label.location),
        None,
        None,
        label,
        timestamp,
        unit,
        classes=dict(pairing.classes[0].aliases) if scored is None else {},
        optional=not when and stream.columns[label.location].filled < ALWAYS,
        when=when,
    )


def _when(stream: Stream, location: str) -> Mapping[str, tuple[str, ...]]:
    """Find the condition on records with a class; empty if nearly all have one."""
    return {} if stream.filled(location) >= ALWAYS else condition(stream, location)


def both_guess(pairing: Pairing) -> list[TopicGuess]:
    """Make the mapping of a topic with both sides; one for each side if their ids are at other locations."""
    if not pairing.is_usable:
        return []
    of_predictions, of_labels = prediction_guess(pairing), label_guess(pairing)
    kinds = (pairing.predictions.kind, pairing.labels.kind)
    assert kinds[0] is not None  # noqa: S101 - called for kinds of one topic only
    assert kinds[1] is not None  # noqa: S101
    of_kind = (kinds[0][0], kinds[0][1], kinds[1][1])
    if of_predictions.id.location != of_labels.id.location:
        return [replace(of_predictions, kind=of_kind), replace(of_labels, kind=of_kind)]
    one_time = (
        of_labels.timestamp is not None
        and of_predictions.timestamp is not None
        and of_labels.timestamp.location == of_predictions.timestamp.location
        and of_labels.timestamp_unit == of_predictions.timestamp_unit
    )
    return [
        TopicGuess(
            of_predictions.topic,
            "both",
            of_predictions.id,
            of_predictions.model,
            of_predictions.prediction,
            of_predictions.score,
            of_labels.label,
            of_predictions.timestamp if one_time else None,
            of_predictions.timestamp_unit if one_time else "ms",
            of_predictions.scores,
            of_labels.classes,
            of_kind,
            of_predictions.has_fold_field,
            largest=of_predictions.largest,
        )
    ]


def _id_choice(pairing: Pairing, *, label: bool) -> Choice:
    best, *others = pairing.ids
    location = best.right if label else best.left
    other = next((pair for pair in others if (pair.right if label else pair.left) != location), None)
    numbered = (
        ": # and the number of the element follow" if _is_numbered(pairing, location, label=label) else ""
    )
    side, met = (pairing.labels, best.right) if label else (pairing.predictions, best.left)
    distinct = len(side.id_columns[met].counts)
    other_side = "predictions" if label else "labels"
    first, *further = side.composites.get(location, (location,))
    affixes = side.affixes.get(location)
    return Choice(
        first,
        f"{best.shared:,} of its {distinct:,} ids were met in {other_side}{numbered}",
        confidence(best.rank, other.rank if other else None),
        (other.right if label else other.left) if other else "",
        tuple(further),
        None if affixes is None else Trimmed(location, *affixes),
    )


def _is_numbered(pairing: Pairing, location: str, *, label: bool) -> bool:
    """Return whether ids of one side are beside the array whose elements are its events."""
    records = (pairing.labels if label else pairing.predictions).records
    return bool(records) and records[0].element is not None and EACH not in location


def _class_choice(classes: Sequence[ClassPair], *, label: bool) -> Choice:
    best, *others = classes
    location = best.label if label else best.prediction
    other = next((pair for pair in others if (pair.label if label else pair.prediction) != location), None)
    why = f"equal in {best.agreement:.0%} of joined records" if not best.aliases else "matched by `classes`"
    if best.largest is not None and not label:
        why = f"the largest number is that of the true class in {best.agreement:.0%} of joined records"
        if best.largest:
            why += "; the order of the classes is a guess: check it"
    return Choice(
        location,
        why,
        confidence(best.rank, other.rank if other else None),
        (other.label if label else other.prediction) if other else "",
    )


def _model(stream: Stream, id_location: str, taken: set[str]) -> Choice:
    """Choose the location of the model's name, with its version if needed; else a constant."""
    if stream.fields:
        models = stream.columns[KEY].counts
        shown = ", ".join(sorted(models)[:4]) + (", …" if len(models) > 4 else "")
        why = f"{len(models)} models, by the names of fields: {shown}; a new field is a new model"
        return Choice(stream.fields, why, form=key_of(stream))
    found = model_name(stream, id_location, taken)
    if found is None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", stream.topic)
        return Choice(f"={name}", "no field names the model: one name for all of this topic", 0.5)
    shown = ", ".join(found.models[:4]) + (", …" if len(found.models) > 4 else "")
    why = f"{len(found.models)} model{'s' * (len(found.models) > 1)}: {shown}"
    location, *further = found.locations
    if further:
        why += f"; {location} alone leaves several predictions of an id, {further[0]} distinguishes them"
    elif found.version:
        why += (
            f"; {found.version} differs too: [{location}, {found.version}] evaluates each version by itself"
        )
    second = found.second
    sure = confidence(found.rank, second.rank if second else None)
    return Choice(location, why, sure, second.location if second else "", tuple(further))


def label_model(pairing: Pairing, label_location: str) -> Choice | None:
    """Choose the location of the model in labels; None if labels do not name models of predictions."""
    ids, why = pairing.ids[0], "names the model that a label is of"
    if pairing.predictions.fields:
        return _label_model_of(pairing, set(pairing.predictions.columns[KEY].counts), label_location, why)
    of_predictions = model_name(pairing.predictions, ids.left)
    if of_predictions is None:
        return None
    if len(of_predictions.locations) > 1:
        locations = joined_names(pairing.labels, ids.right, of_predictions.models)
        return Choice(locations[0], why, further=locations[1:]) if locations else None
    return _label_model_of(pairing, set(of_predictions.models), label_location, why)


def _label_model_of(pairing: Pairing, models: set[str], label_location: str, why: str) -> Choice | None:
    ids = pairing.ids[0]
    for found in model_locations(pairing.labels, ids.right, {label_location}):
        column = pairing.labels.columns[found.location]
        if set(found.models) <= models and column.filled >= FILLED_LABEL:
            return Choice(found.location, why)
    return None


def threshold_of(stream: Stream, score: str) -> str | None:
    """Find the location of a score's threshold by name and few distinct numbers in (0, 1); None without."""
    found = [
        column
        for column in stream.columns.values()
        if column.location != score
        and THRESHOLD & set(words(column.leaf))
        and column.filled >= ALWAYS
        and len(column.numbers) == column.counts.total()
        and all(0 < number < 1 for number in column.numbers)
        and len(column.counts) <= max(MOST_THRESHOLDS, RARE * len(column.raw))
    ]
    near = score.rpartition(".")[0]
    return max(
        (column.location for column in found),
        key=lambda location: (
            location.rpartition(".")[0] == near,
            bool(set(words(location)) & set(words(score))),
        ),
        default=None,
    )


THRESHOLD: Final = frozenset({"threshold", "thresh", "thr", "cutoff", "cut"})
"""Words of a field with the threshold of a score."""
MOST_THRESHOLDS: Final = 20
"""Most distinct thresholds, if records are few."""
RARE: Final = 0.02
"""Most distinct thresholds per record, if records are many; beyond it, a field is a measurement."""


def _timestamp(stream: Stream, taken: set[str]) -> tuple[Choice | None, TimestampUnit]:
    found = moments(stream, taken)
    if not found:
        return None, "ms"
    best, *others = found
    second = others[0] if others else None
    why = f"{best.distance_ms / 1_000:,.3g} s from the record time (median)" if best.distance_ms else ""
    choice = Choice(
        best.location,
        why,
        confidence(best.rank, second.rank if second else None),
        second.location if second else "",
    )
    return choice, best.unit


def _copies(pairing: Pairing) -> set[str]:
    """Return the locations of times in labels that repeat a time of their prediction."""
    ids: IdPair = pairing.ids[0]
    joined = joined_rows(pairing.predictions, pairing.labels, ids)
    made = [stamps(pairing.predictions.columns[m.location], m.unit) for m in moments(pairing.predictions)]
    found: set[str] = set()
    for moment in moments(pairing.labels):
        known = stamps(pairing.labels.columns[moment.location], moment.unit)
        for column in made:
            both = [
                (column[i], known[j]) for i, j in joined if column[i] is not None and known[j] is not None
            ]
            if both and sum(a == b for a, b in both) > COPIED * len(both):
                found.add(moment.location)
    return found


def _scores(pairing: Pairing, largest: Numbers | None) -> Numbers | None:
    """Find probabilities of the classes: an object that names them, or an array with a known order."""
    stream = pairing.predictions
    if not pairing.is_sound:
        return None
    if largest is not None:
        return largest if stream.vectors[largest.location].is_distribution else None
    texts = stream.columns[pairing.classes[0].prediction].texts
    filled = [(at, text) for at, text in enumerate(texts) if text is not None]
    classes = {text for _, text in filled}
    for vector in sorted(stream.vectors.values(), key=lambda vector: vector.location):
        if vector.names and classes & set(vector.names) and vector.are_probabilities:
            return Numbers(vector.location)
        order = None if vector.names or not vector.is_distribution else vector.order(filled)
        if order is not None:
            note = vector.column(order).texts
            if sum(note[at] == text for at, text in filled) > SAME * len(filled):
                return Numbers(vector.location, order)
    return None


SAME = 0.9
"""Share of records whose largest number is that of their class, above which numbers are probabilities."""
