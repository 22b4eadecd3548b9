"""`Journal`: the outcomes since the models' last snapshots, in order, one entry per commit.

Snapshots of all touched models at every commit would take a hundred times the bytes of the outcomes. So a
commit writes its outcomes as a journal entry. When the journal has grown long, snapshots of some models
replace their outcomes in it; a start evaluates the outcomes that are left once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from struct import Struct
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import CARRIED, Name, Outcome, segments_of
from streamwatch.core.join.durable.outcome_columns import columns_of, renumbered, used_numbers
from streamwatch.core.join.durable.packed import (
    Column,
    PackedError,
    carried_in,
    pack_columns,
    pack_scores,
    reading,
    steps_within,
    unpack_columns,
    unpack_scores,
    values_within,
)
from streamwatch.core.outcomes import OUTCOME, PAIR_COLUMNS, SEGMENTS_FROM, OutcomeBatch, Pairs, moved
from streamwatch.core.records import Records
from streamwatch.core.scores import NO_LISTS, ScoreLists, joined_lists

# Encoding of outcomes as one packed value: columns, and the names that numbers in them stand for.
#
# 0xC1, length of the names 1, 4 bytes; msgpack never begins so names msgpack: models, classes,
# `resolved_ms` of the first outcome, `made` of each model's first outcome, texts of segments, packed
# columns of pairs, whether numbers are carried, packed scores; the last four only if there are any columns
# `packed.pack_columns`; those of segments, of carried numbers and of last classes only if there are any
#
# Clocks and counts are stored as differences that are small as a rule: `made` from the model's outcome
# before, `resolved_ms` from the outcome before, `event_ms` from `resolved_ms`. Of `waited_ms` there is how
# far the prediction's own time lies behind its record's.


_HEAD: Final = Struct("<BI")
_MARK: Final = 0xC1
_COLUMNS: Final = (
    "delay_ms",
    "model",
    "true_class",
    "predicted_class",
    "label_at_prediction",
    "assumed",
)
_DIFFERENCES: Final = 4
"""Number of columns of differences, after `_COLUMNS`."""
_CLASSES: Final = ("true_class", "predicted_class", "label_at_prediction")
_ENCODER = msgspec.msgpack.Encoder()
_ROWS = msgspec.msgpack.Decoder(list[Outcome])
_WRAP: Final = 2**32
"""Number at which `made` begins again at 0."""


class _Names(msgspec.Struct, array_like=True, omit_defaults=True):
    """Names by number, and the pairs."""

    models: list[Name]
    classes: list[Name]
    resolved_ms: int
    made: list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]]
    segments: list[Name] = []
    pairs: bytes = b""
    carries: bool = False
    scores: bytes = b""


_NAMES = msgspec.msgpack.Decoder(_Names)


def written(parts: Sequence[Sequence[Outcome]]) -> bytes:
    """Encode outcomes: as columns if they are an `OutcomeBatch`, else one by one."""
    batches = [part for part in parts if isinstance(part, OutcomeBatch)]
    if len(batches) < len(parts):
        return _ENCODER.encode([outcome for part in parts for outcome in part])
    models, classes, segments = CommonNames(), CommonNames(), CommonNames()
    found = columns_of([batch.records for batch in batches])
    of_segments = np.full(len(found["model"]), -1, np.int32)
    start = 0
    scored, scores = [np.zeros(0, np.int64)], [NO_LISTS]
    for run in _with_equal_names(batches):
        batch, some = run[0], slice(start, start + sum(map(len, run)))
        positions, own = batch.own_scores()  # only a batch that is a run of its own has any
        scored.append(start + positions)
        scores.append(replace(own, classes=classes.of(own.classes, batch.classes)))
        start = some.stop
        found["model"][some] = models.of(found["model"][some], batch.models)
        for name in _CLASSES:
            found[name][some] = classes.of(found[name][some], batch.classes)
        found["last_class"][some] = classes.of(found["last_class"][some] - 1, batch.classes) + 1
        if batch.segments:
            of_segments[some] = segments.of(_segments_of(run), batch.segments)
    made, steps = steps_within(found["model"], found["made"])
    pairs = _packed_pairs(batches, models, classes)
    resolved_ms, first_ms = found["resolved_ms"], int(found["resolved_ms"][0])
    named = [models.names, classes.names, first_ms, made.tolist()]
    carries = bool(found["carried"].any())
    packed = pack_scores(np.concatenate(scored), joined_lists(scores))
    further = [segments.names, pairs, carries, packed]
    while further and not further[-1]:
        further.pop()
    named += further
    names = _ENCODER.encode(named)
    after_event = resolved_ms - found["event_ms"]
    columns = [
        *(found[name] for name in _COLUMNS),
        (steps + _WRAP // 2 & _WRAP - 1) - _WRAP // 2,
        np.diff(resolved_ms, prepend=first_ms),
        after_event,
        found["waited_ms"] - found["delay_ms"] - after_event,
    ]
    if segments.names:
        columns.append(of_segments)
    if carries:
        columns.extend(found["carried"].T)
    if found["last_class"].any():
        columns.append(found["last_class"])
    return _HEAD.pack(_MARK, len(names)) + names + pack_columns(columns)


def read(value: bytes) -> OutcomeBatch | list[Outcome]:
    """Decode a value that `written` gave; outcomes in columns have no ids.

    Raises
    ------
    ValueError
        If the value is not of this format.
    """
    if value[:1] != bytes((_MARK,)):
        return _ROWS.decode(value)
    if len(value) < _HEAD.size:
        raise PackedError(f"expected at least {_HEAD.size} bytes of outcomes, got {len(value)}")
    _, length = _HEAD.unpack_from(value)
    start = _HEAD.size + length
    named = _NAMES.decode(value[_HEAD.size : start])
    models, classes, segments = named.models, named.classes, named.segments
    for text in segments:
        segments_of(text)  # refused here, not where somebody looks
    carried = len(CARRIED) if named.carries else 0
    always = len(_COLUMNS) + _DIFFERENCES + bool(segments) + carried
    revised = len(value) > start + 1 and value[start + 1] == always + 1
    columns = unpack_columns(value[start:], always + revised)
    last_class = columns.pop() if revised else None
    columns, numbers = columns[: len(columns) - carried], columns[len(columns) - carried :]
    of_segments = columns.pop() if segments else None
    records = np.zeros(len(columns[0]), OUTCOME)
    for name, column in zip(_COLUMNS, columns, strict=False):
        least, most = (0, len(models)) if name == "model" else (-1, len(classes))
        if (name == "model" or name in _CLASSES) and not _within(column, least, most):
            raise PackedError(f"expected numbers of {most} names, got {column.max()} as {name}")
        records[name] = column
    steps, passed, after_event, behind = (column.astype(np.int64) for column in columns[len(_COLUMNS) :])
    if not _within(records["model"], 0, len(named.made)):
        raise PackedError(f"expected outcomes of {len(named.made)} models, got {records['model'].max()}")
    made = values_within(records["model"], np.array(named.made, np.int64), steps)
    records["made"] = made & _WRAP - 1
    records["resolved_ms"] = named.resolved_ms + np.cumsum(passed)
    records["event_ms"] = records["resolved_ms"] - after_event
    records["waited_ms"] = records["delay_ms"] + after_event + behind
    records["scores"] = -1
    if of_segments is not None:
        if not _within(of_segments, -1, len(segments)):
            raise PackedError(f"expected numbers of {len(segments)} segments, got {of_segments.max()}")
        records["scores"] = np.where(of_segments < 0, -1, of_segments + SEGMENTS_FROM)
    if numbers:
        records["carried"] = carried_in(numbers)
    if last_class is not None:
        records["last_class"] = _last_classes(last_class, len(classes))
    pairs = _unpacked_pairs(named, len(records)) if named.pairs else None
    scores = _unpacked_scores(named, records)
    return OutcomeBatch(records, models, classes, scores, segments, pairs)


def _unpacked_scores(named: _Names, records: Records) -> ScoreLists:
    """Unpack scores, and give their numbers to the outcomes; raises PackedError for an unknown class."""
    if not named.scores:
        return NO_LISTS
    scored, scores = unpack_scores(named.scores, len(records))
    if not _within(scores.classes, 0, len(named.classes)):
        raise PackedError(f"expected numbers of {len(named.classes)} classes, got {scores.classes.max()}")
    beside = np.maximum(records["scores"][scored] - SEGMENTS_FROM, -1)
    records["scores"][scored] = np.arange(len(scored))
    return replace(scores, beside=beside)


def _last_classes(column: Column, classes: int) -> Column:
    """Column `last_class`; raises PackedError if a number has no name."""
    if not _within(column, 0, classes + 1):
        raise PackedError(f"expected 1 + numbers of {classes} names, got {column.max()} as last_class")
    return column


def _packed_pairs(batches: Sequence[OutcomeBatch], models: CommonNames, classes: CommonNames) -> bytes:
    """Pack the pairs of consecutive batches with numbers here; empty without any."""
    found: list[Pairs] = []
    start = 0
    for batch in batches:
        if batch.pairs is not None:
            own = moved(batch.pairs, start)
            own[:, 1] = models.of(batch.pairs[:, 1], batch.models)
            own[:, 2] = classes.of(batch.pairs[:, 2], batch.classes)
            found.append(own)
        start += len(batch)
    if not found:
        return b""
    pairs = np.concatenate(found).astype(np.int64)
    pairs[:, 0] = np.diff(pairs[:, 0], prepend=0)
    return pack_columns(list(np.ascontiguousarray(pairs.T)))


def _unpacked_pairs(named: _Names, outcomes: int) -> Pairs:
    """Unpack what `_packed_pairs` gave; raises PackedError if a number is out of range."""
    columns = np.stack(unpack_columns(named.pairs, PAIR_COLUMNS), axis=1).astype(np.int64)
    if not _within(columns[:, 0], 0, outcomes):
        raise PackedError(f"expected pairs in the order of {outcomes} outcomes, got others")
    columns[:, 0] = np.cumsum(columns[:, 0])
    for number, most in enumerate((outcomes, len(named.models), len(named.classes))):
        if not _within(columns[:, number], 0, most):
            raise PackedError(f"expected pairs with numbers below {most}, got {columns[:, number].max()}")
    if not _within(columns[:, 3], -_WRAP // 2, _WRAP // 2):
        raise PackedError("expected pairs with 32 bits of a number of predictions, got more")
    return columns.astype(np.int32)


def models_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Names of the models of outcomes, in the order in which they first appear."""
    if not isinstance(outcomes, OutcomeBatch):
        return list({outcome.model: None for outcome in outcomes})
    return [outcomes.models[number] for number in _in_order(outcomes.records["model"], len(outcomes.models))]


def _in_order(column: NDArray[np.int32], numbers: int) -> list[int]:
    """Numbers in a column, all below `numbers`, in the order in which they first appear."""
    first = np.full(numbers, -1)
    first[column[::-1]] = np.arange(len(column))[::-1]  # the earliest is written last
    found = np.flatnonzero(first >= 0)
    return found[np.argsort(first[found])].tolist()


class CommonNames:
    """Numbers of names that several batches number differently, in the order in which they are asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """Names by number; grows in place, so a number never stands for another name."""
        self._numbers: dict[str, int] = {}

    def of(self, column: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.int32]:
        """Numbers here of numbers there; -1 stays what it is."""
        column = np.ascontiguousarray(column)
        found = used_numbers(column, len(names))
        numbers: list[int] = found.tolist()
        wanted = [names[number] for number in numbers]
        fresh = [name for name in dict.fromkeys(wanted) if name not in self._numbers]
        self._numbers.update(zip(fresh, range(len(self.names), len(self.names) + len(fresh)), strict=True))
        self.names += fresh
        here = np.empty(len(names), np.int32)
        here[found] = [self._numbers[name] for name in wanted]
        return renumbered(column, here)


class CommonBatches:
    """Gives outcomes of several entries common numbers, so that each name is looked up once by estimators."""

    def __init__(self) -> None:
        self._models, self._classes, self._segments = CommonNames(), CommonNames(), CommonNames()

    def of(self, outcomes: OutcomeBatch) -> OutcomeBatch:
        """Number the names of outcomes, in place."""
        records, models, classes = outcomes.records, self._models, self._classes
        records["model"] = models.of(records["model"], outcomes.models)
        for name in _CLASSES:
            records[name] = classes.of(records[name], outcomes.classes)
        records["last_class"] = classes.of(records["last_class"] - 1, outcomes.classes) + 1
        pairs = outcomes.pairs
        if pairs is not None:
            pairs = pairs.copy()
            pairs[:, 1] = models.of(pairs[:, 1], outcomes.models)
            pairs[:, 2] = classes.of(pairs[:, 2], outcomes.classes)
        scored, scores = outcomes.own_scores()
        scores = replace(scores, classes=classes.of(scores.classes, outcomes.classes))
        numbers = outcomes.segment_numbers()
        if numbers is not None:
            own = self._segments.of(numbers, outcomes.segments)
            unscored = np.ones(len(records), np.bool_)
            unscored[scored] = False
            records["scores"][unscored] = np.where(own < 0, -1, own + SEGMENTS_FROM)[unscored]
            scores = replace(scores, beside=own[scored])
        records["scores"][scored] = np.arange(len(scored))
        return OutcomeBatch(records, models.names, classes.names, scores, self._segments.names, pairs=pairs)


def _with_equal_names(batches: Sequence[OutcomeBatch]) -> list[list[OutcomeBatch]]:
    """Divide batches into runs of consecutive ones whose numbers mean the same; one with scores is alone."""
    runs: list[list[OutcomeBatch]] = []
    for batch in batches:
        last = runs[-1][-1] if runs else None
        if last is not None and last.models is batch.models and last.classes is batch.classes:
            alike = last.segments is batch.segments or not (batch.segments or last.segments)
            if alike and not (len(batch.scores) or len(last.scores)):
                runs[-1].append(batch)
                continue
        runs.append([batch])
    return runs


def _segments_of(run: Sequence[OutcomeBatch]) -> NDArray[np.int32]:
    """Numbers of the segments of a run's outcomes; -1 without any."""
    numbers = [batch.segment_numbers() for batch in run]
    return np.concatenate([each for each in numbers if each is not None])


def _within(column: NDArray[Any], least: int, most: int) -> bool:
    return not len(column) or (least <= int(column.min()) and int(column.max()) < most)


_ALL = 2**62
"""More outcomes than one entry has."""


class JournalPosition(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Journal position up to which a model's snapshot covers it."""

    commit: int
    position: int = _ALL
    """Outcomes of that commit's entry; by default all of them."""


COMPARISONS = ""
"""Who needs the entries that hold pairs of outcomes: all comparisons together. No model has this name."""


class Journal:
    """Collects the outcomes of the next commit, and tracks which entries each model still needs.

    Parameters
    ----------
    limit
        Outcomes beyond which snapshots are asked for.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[Sequence[Outcome]] = []
        self._open = 0
        self._since: dict[str, int] = {}  # first entry that a model needs; ascending, as entries come
        self._sizes: deque[tuple[int, int]] = deque()  # number and outcomes of every entry needed
        self._total = 0

    def __len__(self) -> int:
        """Outcomes in the entries that are needed."""
        return self._total

    @property
    def open(self) -> int:
        """Outcomes for the next entry."""
        return self._open

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Add the outcomes that a batch evaluated to the next entry."""
        if len(outcomes):
            self._parts.append(outcomes if isinstance(outcomes, OutcomeBatch) else list(outcomes))
            self._open += len(outcomes)

    def close(self, number: int) -> bytes:
        """Return the entry of commit `number`: all outcomes added since the last call; empty without any."""
        parts, self._parts, self._open = self._parts, [], 0
        if not parts:
            return b""
        paired = any(map(has_pairs, parts))
        models = dict.fromkeys(chain.from_iterable(map(models_of, parts)))
        self._note(number, list(models), sum(map(len, parts)), paired=paired)
        return written(parts)

    def note(self, number: int, outcomes: Sequence[Outcome], *, paired: bool) -> None:
        """Register an entry found in the store; `paired` tells that comparisons of models need it."""
        self._note(number, models_of(outcomes), len(outcomes), paired=paired)

    def _note(self, number: int, models: Sequence[str], outcomes: int, *, paired: bool) -> None:
        self._since |= dict.fromkeys([model for model in models if model not in self._since], number)
        if paired:
            self._since.setdefault(COMPARISONS, number)
        self._sizes.append((number, outcomes))
        self._total += outcomes

    def forget(self, models: Collection[str]) -> None:
        """Note that models need none of the present entries: they have new snapshots, or have retired."""
        if models:
            gone = set(models)
            self._since = {model: first for model, first in self._since.items() if model not in gone}

    def overdue(self) -> list[str]:
        """Models to be snapshot so that the journal gets shorter, those that need its oldest entries first.

        `COMPARISONS` among them stands for all comparisons.
        Their number keeps the journal near its limit: it is in proportion to what the last entry added.
        """
        if self._total <= self._limit:
            return []
        added = self._sizes[-1][1]
        number = -(-len(self._since) * added // self._limit) + 1
        return [model for model, _ in zip(self._since, range(number), strict=False)]

    def floor(self, number: int) -> int:
        """Return the first entry still needed after commit `number`, and forget all entries before it."""
        floor = next(iter(self._since.values()), number + 1)
        while self._sizes and self._sizes[0][0] < floor:
            self._total -= self._sizes.popleft()[1]
        return floor


def unfolded_pairs(
    journal: Sequence[tuple[int, bytes]], behind: JournalPosition
) -> Iterator[tuple[int, Sequence[Outcome]]]:
    """Yield number and paired outcomes of every entry that the comparisons' snapshot does not cover."""
    common = CommonBatches()
    for number, value in journal:
        if number > behind.commit:
            entry = _entry(number, value)
            if isinstance(entry, OutcomeBatch):
                yield number, common.of(entry.paired())
            else:
                yield number, [outcome for outcome in entry if outcome.pairs]


def _entry(number: int, value: bytes) -> Sequence[Outcome]:
    with reading(f"entry {number} of the journal"):
        return read(value)


def has_pairs(outcomes: Sequence[Outcome]) -> bool:
    """Tell whether comparisons of models need any of these outcomes."""
    if isinstance(outcomes, OutcomeBatch):
        return outcomes.pairs is not None
    return any(outcome.pairs for outcome in outcomes)


def unfolded(
    journal: Sequence[tuple[int, bytes]], behind: Mapping[str, JournalPosition]
) -> Iterator[tuple[int, Sequence[Outcome]]]:
    """Yield every entry's number, with its outcomes that are newer than the snapshots of their models."""
    common = CommonBatches()
    nowhere = JournalPosition(-1, -1)
    for number, value in journal:
        entry = _entry(number, value)
        places = {model: behind.get(model, nowhere) for model in models_of(entry)}
        first = {
            model: _ALL if place.commit > number else place.position if place.commit == number else -1
            for model, place in places.items()
        }
        if isinstance(entry, OutcomeBatch):
            wanted = np.array([first.get(model, -1) for model in entry.models], np.int64)
            chosen = np.arange(len(entry)) >= wanted[entry.records["model"]]
            yield number, common.of(entry if chosen.all() else entry.only(chosen))
        else:
            yield (
                number,
                [outcome for position, outcome in enumerate(entry) if position >= first[outcome.model]],
            )
