"""`Journal`: the outcomes since the models' last snapshots, in order, one entry per commit.

Snapshots of all touched models at every commit would take a hundred times the bytes of the outcomes. So a
commit writes its outcomes as a journal entry. When the journal has grown long, snapshots of some models
replace their outcomes in it; a start evaluates the remaining outcomes again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice, repeat
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.durable.columns import (
    CLASSES,
    COLUMNS,
    DELAY,
    LAST,
    MADE,
    MODEL,
    RESOLVED,
    SEGMENTS,
    Column,
    PackedError,
    are_within,
    columns_of,
    mark_used,
    outcomes_of,
    pack_columns,
    pack_table,
    renumber,
    split_steps,
    unpack_columns,
    values_within,
)
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.join.durable.packed_scores import pack_scores, unpack_scores
from streamwatch.core.records.batch import Records
from streamwatch.core.records.events import Name, segments_of
from streamwatch.core.records.outcomes import PAIR_COLUMNS, SEGMENTS_FROM, OutcomeBatch, Pairs, moved
from streamwatch.core.records.scores import NO_LISTS, ScoreLists, joined_lists

# Encoding of outcomes as one value: parts in columns, and the names that numbers in them stand for.
#
# Clocks and counts are stored as differences that are small as a rule: `made` from the model's outcome
# before, `resolved_ms` from the outcome before.


PART_ROWS: Final = 4_096
"""Number of waiting outcomes from which they are packed: few enough that their columns stay in the cache."""
_ENCODER: Final = msgspec.msgpack.Encoder()
_WRAP: Final = 2**32
"""Number at which `made` begins again at 0."""


class _Part(msgspec.Struct, array_like=True, omit_defaults=True):
    """Some outcomes: packed columns of outcomes without digests, pairs, and scores; empty without any."""

    columns: bytes
    pairs: bytes = b""
    scores: bytes = b""


class _Entry(msgspec.Struct, array_like=True):
    """Names by number, `made` of each model's first outcome, `resolved_ms` of the first, and the outcomes."""

    models: list[Name]
    classes: list[Name]
    segments: list[Name]
    made: list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]]
    resolved_ms: Annotated[int, msgspec.Meta(ge=-(2**60), le=2**60)]
    parts: list[_Part]


_ENTRY: Final = msgspec.msgpack.Decoder(_Entry)


class EntryWriter:
    """Encodes outcomes as they are evaluated, so that little is left to encode at a commit."""

    def __init__(self) -> None:
        self._models, self._classes, self._segments = CommonNames(), CommonNames(), CommonNames()
        self._batches: list[OutcomeBatch] = []
        self._waiting = 0
        self._parts: list[_Part] = []
        self._made = np.zeros((2, 0), np.int64)
        self._begun = np.zeros(0, np.bool_)
        self._outcomes = np.zeros(0, np.int64)
        self._resolved_ms: tuple[int, int] | None = None

    def add(self, batch: OutcomeBatch) -> None:
        """Encode the outcomes of a batch, as soon as there are `PART_ROWS`."""
        self._batches.append(batch)
        self._waiting += len(batch)
        if self._waiting >= PART_ROWS:
            self._pack()

    def close(self) -> bytes:
        """Return the value of all outcomes that were added, at least one; none may be added afterwards."""
        if self._waiting:
            self._pack()
        assert self._resolved_ms is not None  # noqa: S101 - set by the first outcome
        entry = _Entry(
            self._models.names,
            self._classes.names,
            self._segments.names,
            self._made[0, : len(self._models.names)].tolist(),
            self._resolved_ms[0],
            self._parts,
        )
        return _ENCODER.encode(entry)

    def models(self) -> tuple[list[str], list[int]]:
        """Names of the models that have outcomes, and the number of outcomes of each; only after `close`."""
        return _counted(self._models.names, self._outcomes)

    def _pack(self) -> None:
        batches, self._batches, self._waiting = self._batches, [], 0
        models, classes = self._models, self._classes
        columns = columns_of([batch.records for batch in batches])
        scored, scores = [np.zeros(0, np.int64)], [NO_LISTS]
        start = 0
        for run in _with_equal_names(batches):
            batch, some = run[0], slice(start, start + sum(map(len, run)))
            positions, own = batch.own_scores()  # only a batch that is a run of its own has any
            if len(positions):
                scored.append(start + positions)
                scores.append(replace(own, classes=classes.of(own.classes, batch.classes).astype(np.int32)))
            start = some.stop
            models.renumber([columns[MODEL, some]], batch.models)
            columns[LAST, some] -= 1
            classes.renumber([columns[number, some] for number in (*CLASSES, LAST)], batch.classes)
            columns[LAST, some] += 1
            if batch.segments:
                columns[SEGMENTS, some] = self._segments.of(_segments_of(run), batch.segments)
        columns[MADE] = self._steps(columns[MODEL], columns[MADE])
        first_ms, last_ms = int(columns[RESOLVED, 0]), int(columns[RESOLVED, -1])
        first_ms, before_ms = self._resolved_ms or (first_ms, first_ms)
        columns[RESOLVED] = np.diff(columns[RESOLVED], prepend=before_ms)
        self._resolved_ms = first_ms, last_ms
        pairs = _packed_pairs(batches, models, classes)
        packed = pack_scores(np.concatenate(scored), joined_lists(scores)) if len(scored) > 1 else b""
        self._parts.append(_Part(pack_table(columns[DELAY:]), pairs, packed))

    def _steps(self, models: NDArray[np.int64], made: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `made` of each outcome less that of its model's outcome before, from -2³¹ to 2³¹ - 1."""
        missing = len(self._models.names) - len(self._begun)
        if missing > 0:
            room = missing + len(self._begun)
            self._made = np.concatenate([self._made, np.zeros((2, room), np.int64)], axis=1)
            self._begun = np.concatenate([self._begun, np.zeros(room, np.bool_)])
            self._outcomes = np.concatenate([self._outcomes, np.zeros(room, np.int64)])
        self._outcomes += np.bincount(models, minlength=len(self._outcomes))
        steps = np.empty(len(made), np.int64)
        split_steps(models, made, self._made[0], self._made[1], self._begun, steps)
        return (steps + _WRAP // 2 & _WRAP - 1) - _WRAP // 2


def read(value: bytes) -> OutcomeBatch:
    """Decode what `EntryWriter.close` returned; the outcomes have no ids.

    Raises
    ------
    ValueError
        If the value is not of this format.
    """
    found = _ENTRY.decode(value)
    for text in found.segments:
        segments_of(text)  # raises here instead of at the first use
    parts = [unpack_columns(part.columns, COLUMNS - DELAY) for part in found.parts]
    if not parts or any(column.dtype != np.int64 for part in parts for column in part):
        raise PackedError("expected numbers of outcomes, got none or digests")
    columns: list[Column] = [np.concatenate(each).astype(np.int64) for each in zip(*parts, strict=True)]
    columns[:0] = [np.zeros(len(columns[0]), np.uint64)] * DELAY
    if not are_within(columns[MODEL], 0, len(found.made)):
        raise PackedError(f"expected outcomes of {len(found.made)} models, got {columns[MODEL].max()}")
    made = values_within(
        columns[MODEL].astype(np.int32), np.array(found.made, np.int64), columns[MADE].astype(np.int64)
    )
    columns[MADE] = made & _WRAP - 1
    columns[RESOLVED] = found.resolved_ms + np.cumsum(columns[RESOLVED].astype(np.int64))
    records = outcomes_of(columns, len(found.models), len(found.classes), len(found.segments))
    for name in ("true_class", "predicted_class"):
        if not are_within(records[name], 0, len(found.classes)):
            raise PackedError(f"expected a class of every outcome as {name}, got none of one")
    pairs: list[Pairs] = []
    scored, scores = [np.zeros(0, np.int64)], [NO_LISTS]
    start = 0
    for part, [column, *_] in zip(found.parts, parts, strict=True):
        if part.pairs:
            pairs.append(moved(_unpacked_pairs(part.pairs, found, len(column)), start))
        if part.scores:
            positions, own = unpack_scores(part.scores, len(column))
            scored.append(start + positions)
            scores.append(own)
        start += len(column)
    joined = _with_scores(records, np.concatenate(scored), joined_lists(scores), len(found.classes))
    return OutcomeBatch(
        records,
        found.models,
        found.classes,
        joined,
        found.segments,
        np.concatenate(pairs) if pairs else None,
    )


def _with_scores(records: Records, scored: NDArray[np.int64], scores: ScoreLists, classes: int) -> ScoreLists:
    """Write the numbers of scores to their outcomes; raises PackedError for an unknown class."""
    if not are_within(scores.classes, 0, classes):
        raise PackedError(f"expected numbers of {classes} classes, got {scores.classes.max()}")
    beside = np.maximum(records["scores"][scored] - SEGMENTS_FROM, -1)
    records["scores"][scored] = np.arange(len(scored))
    return replace(scores, beside=beside)


def _packed_pairs(batches: Sequence[OutcomeBatch], models: CommonNames, classes: CommonNames) -> bytes:
    """Pack the pairs of consecutive batches, by the numbers of common names; empty without any."""
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


def _unpacked_pairs(value: bytes, named: _Entry, outcomes: int) -> Pairs:
    """Unpack a result of `_packed_pairs`; raises PackedError if a number is out of range."""
    columns = np.stack(unpack_columns(value, PAIR_COLUMNS), axis=1).astype(np.int64)
    if not are_within(columns[:, 0], 0, outcomes):
        raise PackedError(f"expected pairs in the order of {outcomes} outcomes, got others")
    columns[:, 0] = np.cumsum(columns[:, 0])
    for number, most in enumerate((outcomes, len(named.models), len(named.classes))):
        if not are_within(columns[:, number], 0, most):
            raise PackedError(f"expected pairs with numbers below {most}, got {columns[:, number].max()}")
    if not are_within(columns[:, 3], -_WRAP // 2, _WRAP // 2):
        raise PackedError("expected pairs with 32 bits of a number of predictions, got more")
    return columns.astype(np.int32)


def models_of(outcomes: OutcomeBatch) -> tuple[list[str], list[int]]:
    """Names of the models that have outcomes, by number, and the number of outcomes of each."""
    numbers = outcomes.records["model"]
    return _counted(outcomes.models, np.bincount(numbers, minlength=len(outcomes.models)))


def _counted(names: Sequence[str], outcomes: NDArray[np.int64]) -> tuple[list[str], list[int]]:
    """Names that have outcomes, and their numbers of outcomes; `outcomes` is by number of the name."""
    used = np.flatnonzero(outcomes)
    return [names[number] for number in used.tolist()], outcomes[used].tolist()


class CommonNames:
    """One numbering of names for several batches that number them differently.

    Names of a batch that are new are numbered in the order of their numbers in the batch.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        """Names by number; grows in place, so a number never stands for another name."""
        self._numbers: dict[str, int] = {}
        self._of: Sequence[str] | None = None
        self._here = np.zeros(0, np.int64)
        """Common numbers by number in `_of`, the names last renumbered; -1 for those not looked up yet."""

    def renumber(self, columns: Sequence[NDArray[np.int64]], names: Sequence[str]) -> None:
        """Replace a batch's numbers of `names` by common ones, in columns, int64 (n,); -1 stays -1."""
        here = self._known(names)
        used = np.zeros(len(names), np.bool_)
        for column in columns:
            mark_used(column, used)
        fresh = np.flatnonzero(used & (here < 0))
        if len(fresh):
            here[fresh] = self._numbers_of([names[number] for number in fresh.tolist()])
        for column in columns:
            renumber(column, here, column)

    def of(self, column: NDArray[Any], names: Sequence[str]) -> NDArray[np.int64]:
        """Return the common numbers, int64 (n,), for a batch's numbers of `names`; -1 stays -1."""
        found = column.astype(np.int64)
        self.renumber([found], names)
        return found

    def _known(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the common numbers looked up so far, by number of `names`, which may have become more."""
        if self._of is not names:
            self._of, self._here = names, np.zeros(0, np.int64)
        missing = len(names) - len(self._here)
        if missing:
            self._here = np.concatenate([self._here, np.full(missing, -1)])
        return self._here

    def _numbers_of(self, wanted: Sequence[str]) -> list[int]:
        """Return the common numbers of names."""
        numbers = self._numbers
        before = len(numbers)
        found = [numbers.setdefault(name, len(numbers)) for name in wanted]
        fresh = list(islice(reversed(numbers), len(numbers) - before))
        self.names += reversed(fresh)
        return found


class CommonBatches:
    """Renumbers the names of several batches alike, so that estimators look each name up once."""

    def __init__(self) -> None:
        self._models, self._classes, self._segments = CommonNames(), CommonNames(), CommonNames()

    def of(self, outcomes: OutcomeBatch) -> OutcomeBatch:
        """Return outcomes with common numbers of names; the records are changed in place."""
        records, models, classes = outcomes.records, self._models, self._classes
        records["model"] = models.of(records["model"], outcomes.models)
        for name in ("true_class", "predicted_class", "label_at_prediction"):
            records[name] = classes.of(records[name], outcomes.classes)
        records["last_class"] = classes.of(records["last_class"] - 1, outcomes.classes) + 1
        pairs = outcomes.pairs
        if pairs is not None:
            pairs = pairs.copy()
            pairs[:, 1] = models.of(pairs[:, 1], outcomes.models)
            pairs[:, 2] = classes.of(pairs[:, 2], outcomes.classes)
        scored, scores = outcomes.own_scores()
        scores = replace(scores, classes=classes.of(scores.classes, outcomes.classes).astype(np.int32))
        numbers = outcomes.segment_numbers()
        if numbers is not None:
            own = self._segments.of(numbers, outcomes.segments)
            unscored = np.ones(len(records), np.bool_)
            unscored[scored] = False
            records["scores"][unscored] = np.where(own < 0, -1, own + SEGMENTS_FROM)[unscored]
            scores = replace(scores, beside=own[scored].astype(np.int32))
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


_ALL: Final = 2**62
"""More outcomes than one entry has."""


class JournalPosition(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Journal position up to which a model's snapshot covers it."""

    commit: Annotated[int, msgspec.Meta(ge=-1, le=_ALL)]
    position: Annotated[int, msgspec.Meta(ge=-1, le=_ALL)] = _ALL
    """Outcomes of that commit's entry; by default all of them."""


COMPARISONS = ""
"""Name, among those of models, for all comparisons, which need the entries with pairs of outcomes."""


MODELS: Final = 5_000
"""Number of models up to which the journal's limit holds; for more it is larger in proportion, so that a
model has several hundred outcomes for each snapshot, which costs as much as these."""
ROOM: Final = 50
"""Bytes that entries may take for each outcome of the journal's limit, before all of them are replaced."""
MOST_ENTRIES: Final = 5_000
"""Number of entries from which on all of them are replaced in turn, however few outcomes they have: to
evaluate one again, a start takes half a millisecond and more, as long as for hundreds of outcomes."""
MOST_SHARES: Final = 4
FEW: Final = 50
"""Most models that are overdue at once, besides `MOST_SHARES` times as many as have a turn at each commit if
all have one while as many outcomes are added as the limit."""


def limit_of(outcomes: int, models: int) -> int:
    """Limit of the journal of so many models, where it is `outcomes` for up to `MODELS` of them."""
    return outcomes * max(models, MODELS) // MODELS


class Journal:
    """Collects the outcomes of the next commit, and tracks which entries each model still needs.

    An entry is kept until no model needs it, so most of its outcomes may be of models that have a snapshot
    since, and are not evaluated again: with many models, half of all. They take little room, while another
    snapshot takes that of hundreds of outcomes; so only the outcomes that a start evaluates again count
    against the limit, unless entries become large. Nor are there more entries than a start reads in seconds:
    with an outcome a second, there would be as many as outcomes.

    Parameters
    ----------
    limit
        Number of outcomes to be evaluated again beyond which models are `overdue`, of up to `MODELS` models.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._writer = EntryWriter()
        self._open = 0
        self._paired = False
        self._since: dict[str, int] = {}  # first entry that a model needs; ascending, as entries come
        self._waiting: dict[str, int] = {}  # outcomes of a model to be evaluated again
        self._entries: deque[tuple[int, int, int]] = deque()  # number, outcomes and bytes of those needed
        self._held = self._held_bytes = self._total = 0

    def __len__(self) -> int:
        """Outcomes that a start evaluates again."""
        return self._total

    @property
    def limit(self) -> int:
        """Outcomes to be evaluated again beyond which some of the present models are `overdue`."""
        return limit_of(self._limit, len(self._since))

    @property
    def open(self) -> int:
        """Outcomes for the next entry."""
        return self._open

    @property
    def models(self) -> list[str]:
        """Models with outcomes that a start evaluates again, those that need the oldest entries first."""
        return list(self._waiting)

    def add(self, outcomes: OutcomeBatch) -> None:
        """Add the outcomes that a batch evaluated to the next entry."""
        if len(outcomes):
            self._writer.add(outcomes)
            self._open += len(outcomes)
            self._paired = self._paired or outcomes.pairs is not None

    def close(self, number: int) -> bytes:
        """Return the entry of commit `number`: all outcomes added since the last call; empty without any."""
        if not self._open:
            return b""
        writer, paired = self._writer, self._paired
        self._writer, self._open, self._paired = EntryWriter(), 0, False
        entry = writer.close()
        names, outcomes = writer.models()
        self._note(number, names, outcomes, sum(outcomes), len(entry), paired=paired)
        return entry

    def note(self, number: int, outcomes: OutcomeBatch, count: int, size: int, *, paired: bool) -> None:
        """Register an entry found in the store.

        Parameters
        ----------
        number
            Number of its commit.
        outcomes
            Its outcomes that are evaluated again.
        count
            Number of all of its outcomes, with those that a snapshot covers: they stay as long as the entry.
        size
            Bytes of the entry.
        paired
            Whether comparisons of models need it.
        """
        self._note(number, *models_of(outcomes), count, size, paired=paired)

    def _note(
        self,
        number: int,
        models: Sequence[str],
        outcomes: Sequence[int],
        count: int,
        size: int,
        *,
        paired: bool,
    ) -> None:
        since, waiting = self._since, self._waiting
        for model, own in zip(models, outcomes, strict=True):
            if model in waiting:
                waiting[model] += own
            else:
                waiting[model], since[model] = own, number
        if paired:
            self._since.setdefault(COMPARISONS, number)
        self._entries.append((number, count, size))
        self._total += sum(outcomes)
        self._held += count
        self._held_bytes += size

    def forget(self, models: Collection[str]) -> None:
        """Note that models need none of the present entries: they have new snapshots, or have retired.

        A model may be named several times: it may retire more than once between two commits.
        """
        known = [model for model in dict.fromkeys(models) if model in self._since]
        deque(map(self._since.pop, known), maxlen=0)
        self._total -= sum(map(self._waiting.pop, known, repeat(0)))

    def overdue(self) -> list[str]:
        """Return the models whose snapshots shorten the journal, those that need its oldest entries first.

        `COMPARISONS` among them stands for all comparisons. There are as many as it takes

        - for the outcomes to be evaluated again to stay near the limit;
        - if entries are large, for all models to have a turn while as many outcomes are added as the limit;
        - if entries are many, for all models to have a turn before there are twice as many entries.
        """
        of_entries = 0
        if len(self._entries) > MOST_ENTRIES:
            of_entries = -(-len(self._since) // MOST_ENTRIES) + 1
        limit = self.limit
        if self._held <= limit:
            return list(islice(self._since, of_entries))
        share = -(-len(self._since) * self._entries[-1][1] // limit) + 1
        number, over = 0, self._total - limit
        if over > 0:
            first = islice(self._since, FEW + MOST_SHARES * share)
            number = bisect_left(list(accumulate(map(self._waiting.get, first, repeat(0)))), over) + 1
        if self._held_bytes > ROOM * limit:
            number = max(number, share)
        return list(islice(self._since, max(number, of_entries)))

    def floor(self, number: int) -> int:
        """Return the first entry still needed after commit `number`, and forget all entries before it."""
        floor = next(iter(self._since.values()), number + 1)
        while self._entries and self._entries[0][0] < floor:
            _, outcomes, size = self._entries.popleft()
            self._held -= outcomes
            self._held_bytes -= size
        return floor


def unfolded_pairs(
    journal: Sequence[tuple[int, bytes]], behind: JournalPosition
) -> Iterator[tuple[int, OutcomeBatch]]:
    """Yield number and paired outcomes of every entry that the comparisons' snapshot does not cover.

    Raises PackedError, which names the entry, for one that cannot be decoded; so does `unfolded`.
    """
    common = CommonBatches()
    for number, value in journal:
        if number > behind.commit:
            yield number, common.of(_entry(number, value).paired())


def _entry(number: int, value: bytes) -> OutcomeBatch:
    with reading(f"entry {number} of the journal"):
        return read(value)


def unfolded(
    journal: Sequence[tuple[int, bytes]], behind: Mapping[str, JournalPosition]
) -> Iterator[tuple[int, int, OutcomeBatch]]:
    """Yield every entry's number, how many outcomes it has, and those newer than their models' snapshots."""
    common = CommonBatches()
    nowhere = JournalPosition(-1, -1)
    for number, value in journal:
        entry = _entry(number, value)
        covered = {model: behind.get(model, nowhere) for model in models_of(entry)[0]}
        first = {
            model: _ALL if at.commit > number else at.position if at.commit == number else -1
            for model, at in covered.items()
        }
        wanted = np.array([first.get(model, -1) for model in entry.models], np.int64)
        chosen = np.arange(len(entry)) >= wanted[entry.records["model"]]
        yield number, len(entry), common.of(entry if chosen.all() else entry.only(chosen))
