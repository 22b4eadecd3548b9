"""Guessed mappings of topics, of one model or several, made from a pairing of predictions and labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamwatch.edge.decoders.mapping import InFields, KeyOf, TimestampUnit, Trimmed, parse_field_location
from streamwatch.inspection.classes import ClassPair
from streamwatch.inspection.columns import Column
from streamwatch.inspection.guessed import Choice, Numbers, ScoreChoice, TopicGuess, confidence
from streamwatch.inspection.ids import INFORMATIVE, IdPair, Pairing, joined_rows
from streamwatch.inspection.models import ENOUGH, MAX_MODELS, joined_names, model_locations, model_name
from streamwatch.inspection.streams import EACH, KEY, KIND_FILLED, MAX_KINDS, Moment, Stream, moments, stamps
from streamwatch.inspection.words import MODEL, weight, words

SURE: Final = 0.98
"""Share of the records with a text that must have a class, or must have none, for it to be a condition."""
FEWEST: Final = 3
"""Least number of records with a text for it to be a condition."""
CONDITION_WORDS: Final = frozenset({"type", "kind", "event", "action", "operation"})
"""Words in the name of a field with the kind of a record; not `status`, as that of a record changes."""


def condition(stream: Stream, location: str) -> Mapping[str, tuple[str, ...]]:
    """Find a condition (`when`): a location whose texts distinguish records with a content at `location`.

    Empty if there is none, and for elements of arrays, to which conditions do not apply.
    """
    if not stream.records or stream.records[0].element is not None:
        return {}
    present = _present(stream, location)
    found = [
        (column, texts)
        for column in stream.columns.values()
        if CONDITION_WORDS & set(words(column.leaf))
        and column.location != location
        and "[" not in column.location
        and (texts := _texts(column, present))
    ]
    if not found:
        return {}
    column, texts = min(found, key=lambda each: len(each[0].counts))
    return {column.location: texts}


def _present(stream: Stream, location: str) -> list[bool]:
    if location in stream.columns:
        return [text is not None for text in stream.columns[location].texts]
    return [row is not None for row in stream.vectors[location].rows]


def _texts(column: Column, present: list[bool]) -> tuple[str, ...]:
    """Return the texts of a column whose records have the class, if records with others have none."""
    if column.filled < KIND_FILLED or not 2 <= len(column.counts) <= MAX_KINDS or column.is_continuous:
        return ()
    having = Counter(
        text for text, has in zip(column.texts, present, strict=True) if has and text is not None
    )
    meant: list[str] = []
    for text, count in column.counts.items():
        share = having[text] / count
        if count < FEWEST or 1 - SURE < share < SURE:
            return ()
        if share >= SURE:
            meant.append(text)
    return tuple(sorted(meant)) if 0 < len(meant) < len(column.counts) else ()


# fmt: off
ROLES: Final = frozenset({
    "champion", "challenger", "shadow", "candidate", "control", "treatment", "primary", "secondary",
    "baseline", "incumbent", "production", "prod", "live", "current", "new", "old", "canary", "next",
    "main", "backup", "stable", "experimental", "legacy",
})
# fmt: on
"""Words that distinguish models in one record."""
IN_COMMON: Final = 0.9
"""Share of the classes of the field with fewer classes that the other field must also have."""
ALWAYS: Final = 0.98
"""Share of records (or fields of objects) with a content from which on those without count as mistakes."""
_NUMBERED: Final = re.compile(r"\d+|[a-z]")


@dataclass(frozen=True, slots=True)
class _Parallel:
    """Two locations that differ in one step."""

    steps: tuple[str, str]
    """The differing steps."""
    prefixes: tuple[str, str]
    """The locations up to and including the differing step."""
    inner: bool
    """Whether the step is an object around the class, not the field of the class."""


def with_challengers(guess: TopicGuess, pairing: Pairing) -> TopicGuess:
    """Add mappings for further models that predict in the same records, in the order of their fields.

    Returns the guess unchanged without any.
    """
    best, *others = pairing.classes or (None,)
    if best is None or guess.score is not None or guess.largest is not None or guess.prediction is None:
        return guess
    stream = pairing.predictions
    if (
        stream.fields
        or stream.kind is not None
        or not stream.records
        or stream.records[0].element is not None
    ):
        return guess
    found = [(pair, way) for pair in others if (way := _way(stream, best, pair)) is not None]
    if not found:
        return guess
    order = list(stream.columns)
    models = [(best, found[0][1], 0), *((pair, way, 1) for pair, way in found)]
    models.sort(key=lambda each: order.index(each[0].prediction))
    first, *further = [_mapping(guess, stream, *each) for each in models]
    return replace(first, others=tuple(further))


def _mapping(guess: TopicGuess, stream: Stream, pair: ClassPair, way: _Parallel, side: int) -> TopicGuess:
    """Make the mapping of one of the models from that of the likeliest one."""
    why = f"beside {way.steps[1 - side]}; equal to the label in {pair.agreement:.0%} of joined records"
    is_optional = stream.filled(pair.prediction) < ALWAYS
    when = condition(stream, pair.prediction) if is_optional else {}
    return replace(
        guess,
        model=_parallel_model(stream, way, side),
        prediction=Choice(pair.prediction, why),
        scores=None,
        when=when,
        optional=is_optional and not when,
    )


def _way(stream: Stream, best: ClassPair, pair: ClassPair) -> _Parallel | None:
    """Return how the field of another model differs from the best one; None if it is not another model's."""
    if (
        pair.label != best.label
        or pair.largest is not None
        or pair.unmatched
        or pair.association <= INFORMATIVE
    ):
        return None
    if dict(pair.aliases) != dict(best.aliases):
        return None
    one, other = (set(stream.columns[each.prediction].counts) for each in (best, pair))
    if len(one & other) < IN_COMMON * min(len(one), len(other)):
        return None
    way = _parallel(best.prediction, pair.prediction)
    if way is None or not (_are_roles(*way.steps) or (way.inner and _are_named(stream, way))):
        return None
    return way


def _parallel(one: str, other: str) -> _Parallel | None:
    left, right = one.split("."), other.split(".")
    apart = [i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b]
    if len(left) != len(right) or len(apart) != 1:
        return None
    at = apart[0]
    prefixes = ".".join(left[: at + 1]), ".".join(right[: at + 1])
    return _Parallel((left[at], right[at]), prefixes, at < len(left) - 1)


def _are_roles(one: str, other: str) -> bool:
    """Return whether two names, without their common words, are roles or numbers of models."""
    left, right = words(one), words(other)
    own = [word for word in left if word not in right], [word for word in right if word not in left]
    return all(side and all(word in ROLES or _NUMBERED.fullmatch(word) for word in side) for side in own)


def _are_named(stream: Stream, way: _Parallel) -> bool:
    return all(_name_column(stream, prefix) is not None for prefix in way.prefixes)


def _name_column(stream: Stream, prefix: str) -> Column | None:
    """Find the field beside the class that names its model; None without one."""
    found: Sequence[Column] = [
        column
        for column in stream.columns.values()
        if column.location.startswith(f"{prefix}.")
        and weight(column.location.removeprefix(f"{prefix}."), MODEL) >= ENOUGH
        and len(column.counts) <= MAX_MODELS
        and not column.is_continuous
        and not column.is_boolean
    ]
    return max(found, key=lambda column: weight(column.leaf, MODEL), default=None)


def _parallel_model(stream: Stream, way: _Parallel, side: int) -> Choice:
    """Choose the location of the model's name beside its class, else a constant of the differing words."""
    column = _name_column(stream, way.prefixes[side]) if way.inner else None
    if column is not None:
        return Choice(column.location, f"models: {', '.join(sorted(column.counts)[:4])}")
    step, other = way.steps[side], words(way.steps[1 - side])
    roles = [word for word in words(step) if word not in other]
    name = step if way.inner or not all(word in ROLES for word in roles) else "-".join(roles)
    return Choice(f"={re.sub(r'[^A-Za-z0-9._-]+', '-', name)}", "no field names it: one name for all", 0.5)


# Guessed mapping of a topic, made from a pairing of predictions and labels.


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
    best = pairing.ids[0]
    location, runner_up, sure = _ranked([(pair.right if label else pair.left, pair) for pair in pairing.ids])
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
        sure,
        runner_up,
        tuple(further),
        None if affixes is None else Trimmed(location, *affixes),
    )


def _is_numbered(pairing: Pairing, location: str, *, label: bool) -> bool:
    """Return whether ids of one side are beside the array whose elements are its events."""
    records = (pairing.labels if label else pairing.predictions).records
    return bool(records) and records[0].element is not None and EACH not in location


def _class_choice(classes: Sequence[ClassPair], *, label: bool) -> Choice:
    best = classes[0]
    location, runner_up, sure = _ranked(
        [(pair.label if label else pair.prediction, pair) for pair in classes]
    )
    why = f"equal in {best.agreement:.0%} of joined records" if not best.aliases else "matched by `classes`"
    if best.largest is not None and not label:
        why = f"the largest number is that of the true class in {best.agreement:.0%} of joined records"
        if best.largest:
            why += "; the order of the classes is a guess: check it"
    return Choice(location, why, sure, runner_up)


def _ranked(found: Sequence[tuple[str, IdPair | ClassPair | Moment]]) -> tuple[str, str, float]:
    """Return the first location, the next other one, empty without one, and the confidence in the first."""
    location, best = found[0]
    other, second = next(((at, each) for at, each in found if at != location), ("", None))
    return location, other, confidence(best.rank, second.rank if second else None)


def _model(stream: Stream, id_location: str, taken: set[str]) -> Choice:
    """Choose the location of the model's name, with its version if needed; else a constant."""
    if stream.fields:
        models = stream.columns[KEY].counts
        shown = ", ".join(sorted(models)[:4]) + (", …" if len(models) > 4 else "")
        why = f"{len(models)} models, by the names of fields: {shown}; a new field is a new model"
        return Choice(stream.fields, why, form=_key_of(stream))
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


def _key_of(stream: Stream) -> KeyOf:
    """Return the `key_of` of a stream of fields, as in a mapping."""
    location = parse_field_location(stream.fields)
    assert isinstance(location, InFields)  # noqa: S101 - which is how the stream was made
    plain = not location.prefix and not location.suffix
    return KeyOf(stream.fields.removesuffix(".*") if plain else stream.fields)


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
    best = found[0]
    location, runner_up, sure = _ranked([(moment.location, moment) for moment in found])
    why = f"{best.distance_ms / 1_000:,.3g} s from the record time (median)" if best.distance_ms else ""
    return Choice(location, why, sure, runner_up), best.unit


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
