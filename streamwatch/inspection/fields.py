"""Models named by fields (`key_of`), as in `{"scores": {"champion": 0.7, "challenger": 0.4}}`.

The field of a model has a class, a score, or a number for each class.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from streamwatch.edge.decoders.mapping import (
    InValue,
    Step,
    parse_field_location,
)
from streamwatch.inspection.classes import (
    INFORMATIVE_SCORE,
    MIN_PAIRS,
    ClassPair,
    ScorePair,
    class_pairs,
    cramers_v,
    score_pair,
    scores_by_class,
)
from streamwatch.inspection.columns import FlatRecord, walk
from streamwatch.inspection.ids import INFORMATIVE, Pairing, joined_rows
from streamwatch.inspection.models import ENOUGH, MAX_MODELS
from streamwatch.inspection.streams import KEY, Stream
from streamwatch.inspection.topic_guesses import ALWAYS, IN_COMMON, ROLES
from streamwatch.inspection.words import MODEL, PREDICTION, SCORES, area_under_roc, weight, words

NAMED: Final = frozenset({"models", "outputs", "results", "decisions", "inferences", "answers"})
"""Words of an object with a field for each model, beside those of predictions and scores."""
LEAST_WEIGHT: Final = 0.6
"""Least weight of a word that counts as one of predictions."""
CLASSES: Final = 0.9
"""Share of field names that are classes, above which an object has a number for each class."""
_BETWEEN: Final = re.compile(r"[_\-]")


def with_fields(pairing: Pairing) -> Pairing:
    """Treat the fields of an object as models, if several of them have a class or score; else unchanged."""
    stream = pairing.predictions
    if stream.kind is not None or not stream.records or stream.records[0].element is not None:
        return pairing
    scored = None if pairing.is_sound else pairing.scored
    if scored is None and not pairing.classes:
        return pairing
    location = pairing.classes[0].prediction if scored is None else scored.score
    for fields, tail in _candidates(location):
        found = _paired(pairing, fields, tail)
        if found is not None:
            return found
    return pairing


@dataclass(frozen=True, slots=True)
class _Fields:
    """Fields of an object whose names have a prefix and a suffix, which may be empty."""

    path: tuple[Step, ...]
    """Path of the object."""
    prefix: str
    suffix: str
    location: str
    """Location with `*` in place of the differing part of the names."""

    @property
    def is_flat(self) -> bool:
        """Return whether the object also has other fields, so that names need a prefix or a suffix."""
        return bool(self.prefix or self.suffix)

    def of(self, tree: Any) -> Iterator[tuple[str, str, Any]]:
        """Yield for each field the differing part of its name, its name and its content."""
        here = tree
        for step in self.path:
            here = cast("dict[Any, Any]", here).get(step) if isinstance(here, dict) else None
        if not isinstance(here, dict):
            return
        for name, content in cast("dict[str, Any]", here).items():
            inner = name.removeprefix(self.prefix).removesuffix(self.suffix)
            if inner and name == f"{self.prefix}{inner}{self.suffix}" and content is not None:
                yield inner, name, content


def _candidates(location: str) -> Iterator[tuple[_Fields, str]]:
    """Yield ways to take a step of a location for a model: the whole step, or it without prefix or suffix.

    Each is with the rest of the location after the step.
    """
    if not location.startswith("value."):
        return
    parsed = parse_field_location(location)
    if not isinstance(parsed, InValue):
        return
    steps = [f".{step}" for step in parsed.path]
    for at in reversed(range(len(steps))):
        head, tail = "value" + "".join(steps[:at]), "".join(steps[at + 1 :])
        path, name = parsed.path[:at], parsed.path[at]
        if any(set(step) & _SPECIAL for step in parsed.path):
            return
        if at > 0:
            yield _Fields(path, "", "", f"{head}.*"), tail
        parts = _BETWEEN.split(name)
        if len(parts) > 1:
            first, last = name[: len(parts[0]) + 1], name[-len(parts[-1]) - 1 :]
            yield _Fields(path, first, "", f"{head}.{first}*"), tail
            yield _Fields(path, "", last, f"{head}.*{last}"), tail


_SPECIAL: Final = frozenset('.[]"*')


def _paired(pairing: Pairing, fields: _Fields, tail: str) -> Pairing | None:
    """Pair the contents of the fields with the labels; None if the fields are not models."""
    whole = pairing.predictions
    stream = Stream(whole.topic, list(_rows(whole.records, fields)), None, fields.location, whole.affixes,
                    whole.composites)  # fmt: skip
    location = f"{fields.location}{tail}"
    if location not in (stream.columns if _is_plain(pairing) else stream.vectors):
        return None
    if not _are_models(stream, fields, location, tail, pairing):
        return None
    ids = pairing.ids[0]
    if ids.left not in stream.id_columns:
        return None  # the id is one of the fields
    joined = joined_rows(stream, pairing.labels, ids)
    by_model = _by_model(stream, joined)
    taken = [ids.left, ids.right, KEY]
    scored = None if pairing.is_sound else pairing.scored
    if scored is not None:
        return _of_scores(pairing, stream, location, scored, by_model, taken)
    best = pairing.classes[0]
    classes = [
        pair
        for pair in class_pairs(stream, pairing.labels, joined, taken)
        if (pair.prediction, pair.label) == (location, best.label)
    ]
    if not classes or not _are_alike(stream, pairing.labels, location, best, by_model):
        return None
    return Pairing(stream, pairing.labels, pairing.ids, classes, pairing.rank)


def _is_plain(pairing: Pairing) -> bool:
    """Return whether the prediction is the content of a field, not the largest of several numbers."""
    return not pairing.is_sound or pairing.classes[0].largest is None


def _rows(records: Sequence[FlatRecord], fields: _Fields) -> Iterator[FlatRecord]:
    for record in records:
        own = list(fields.of(record.tree))
        inside = tuple(f"{fields.location.rpartition('.')[0]}.{name}" for _, name, _ in own)
        shared = {
            location: scalar
            for location, scalar in record.scalars.items()
            if not any(location == each or location.startswith((f"{each}.", f"{each}[")) for each in inside)
        }
        for model, _, content in own:
            row = FlatRecord(record.record, {**shared, KEY: model})
            walk(fields.location, content, row)
            yield row


def _are_models(  # noqa: PLR0911 - a reason each
    stream: Stream, fields: _Fields, location: str, tail: str, pairing: Pairing
) -> bool:
    """Return whether the names of fields are those of models, by words and by what the fields have."""
    names = stream.columns[KEY].counts
    if not 2 <= len(names) <= MAX_MODELS or stream.filled(location) < ALWAYS:
        return False
    pair = pairing.classes[0] if pairing.is_sound else pairing.scored
    label = pairing.labels.columns[pair.label] if pair is not None else None
    if pair is None or (pairing.labels.topic == stream.topic and pair.label not in stream.columns):
        return False  # the label is one of the fields
    if fields.is_flat and all(set(words(name)) <= ROLES for name in names):
        return False  # a mapping for each role says more
    if label is not None and len(names.keys() & label.counts.keys()) > CLASSES * len(names):
        return False  # a number, or a flag, for each class
    if tail and any(
        weight(column.location.removeprefix(fields.location), MODEL) >= ENOUGH
        for column in stream.columns.values()
        if column.location.startswith(f"{fields.location}.") and not column.is_continuous
    ):
        return False  # each names its model itself
    named = set(words(f"{fields.location}{tail}"))
    if named & (NAMED | SCORES) or any(PREDICTION.get(word, 0.0) >= LEAST_WEIGHT for word in named):
        return True
    return all(set(words(name)) <= ROLES for name in names)


def _by_model(stream: Stream, joined: Sequence[tuple[int, int]]) -> Mapping[str, list[tuple[int, int]]]:
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    models = stream.columns[KEY].texts
    for i, j in joined:
        if (model := models[i]) is not None:
            found[model].append((i, j))
    return found


def _are_alike(
    stream: Stream,
    labels: Stream,
    location: str,
    best: ClassPair,
    by_model: Mapping[str, Sequence[tuple[int, int]]],
) -> bool:
    """Return whether each model's classes are associated with the true ones, and models share most classes.

    Fields with a common prefix or suffix may be of different tasks; therefore each needs at least half of the
    association of the best one.
    """
    least = INFORMATIVE if stream.fields.endswith(".*") else max(INFORMATIVE, best.association / 2)
    true = labels.columns[best.label].texts
    if best.largest is None:
        shown = stream.columns[location].texts
    else:
        vector = stream.vectors[location]
        shown = vector.column(vector.names or best.largest).texts
    classes: list[set[str]] = []
    for joined in by_model.values():
        both = Counter(
            (x, y) for i, j in joined if (x := shown[i]) is not None and (y := true[j]) is not None
        )
        if both.total() < MIN_PAIRS:
            continue
        if cramers_v(both) <= least:
            return False
        classes.append({x for x, _ in both})
    every = set[str]().union(*classes)
    return (
        len(classes) > 1
        and all(len(each & every) >= min(len(each), 2) for each in classes)
        and _overlap(classes)
    )


def _overlap(classes: Sequence[set[str]]) -> bool:
    first, *others = sorted(classes, key=len, reverse=True)
    return all(len(first & other) >= IN_COMMON * len(other) for other in others)


def _of_scores(
    pairing: Pairing,
    stream: Stream,
    location: str,
    scored: ScorePair,
    by_model: Mapping[str, Sequence[tuple[int, int]]],
    taken: Sequence[str],
) -> Pairing | None:
    """Pair scores of models with the labels; None unless each score separates the same classes."""
    column, true = stream.columns[location], pairing.labels.columns[scored.label]
    if not column.is_score:
        return None
    informative = 0
    for joined in by_model.values():
        of = scores_by_class(column, true, joined)
        if min(map(len, of.values())) < MIN_PAIRS:
            continue
        if area_under_roc(of[scored.above], of[scored.below]) < INFORMATIVE_SCORE:
            return None
        informative += 1
    joined = [each for own in by_model.values() for each in own]
    found = score_pair(stream, pairing.labels, joined, taken)
    if informative < 2 or found is None or found.score != location:
        return None
    return Pairing(stream, pairing.labels, pairing.ids, [], pairing.rank, found)
