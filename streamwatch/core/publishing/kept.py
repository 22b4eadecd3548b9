"""What commits keep for topics: outcomes, a fifth as large as JSON, their digests, and invalid records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Self, TypeAlias

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from streamwatch.core.ports import Record
from streamwatch.core.records.batch import gather_texts
from streamwatch.core.records.events import CARRIED, Name, model_of, segments_of
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch


class Keys(NamedTuple):
    """Namespace and id of each outcome's record, as one text; each column has shape (n,)."""

    texts: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """Number of bytes; -1 if the outcome has no id."""


class KeptOutcomes(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive outcomes of a commit."""

    models: list[Name]
    """Names by number, folds included."""
    classes: list[Name]
    segments: list[Name]
    """Values of segments, as `core.records.events.segments_text` writes them."""
    records: bytes
    """Rows of dtype `OUTCOME` with numbers of these names; `scores` has numbers of segments only."""
    keys: bytes
    """Keys of the outcomes that have one, each followed by one byte."""
    key_sizes: bytes
    """int32 for each outcome: number of bytes of its key; -1 without a key."""

    @classmethod
    def of(cls, batch: OutcomeBatch, keys: Keys) -> Self:
        """Convert outcomes, and the keys of their records."""
        records = batch.records.copy()
        [model], models = _renumbered([records["model"]], batch.models)
        columns = [records[name] for name in _CLASSES]
        columns.append(records["last_class"] - 1)
        numbers, classes = _renumbered(columns, batch.classes)
        of_segments = batch.segment_numbers()
        records["model"] = model
        for name, column in zip(_CLASSES, numbers, strict=False):
            records[name] = column
        records["last_class"] = numbers[-1] + 1
        segments: list[str] = []
        records["scores"] = -1
        if of_segments is not None:
            [values], segments = _renumbered([of_segments], batch.segments)
            records["scores"] = np.where(values < 0, -1, SEGMENTS_FROM + values)
        return cls(models, classes, segments, records.tobytes(), *_gathered(keys))

    def require_whole(self) -> None:
        """Check what was read from a state, as the compiled writer of lines looks up whatever number it gets.

        Raises
        ------
        ValueError
            If columns are not of the same outcomes, or a number has no name.
        """
        if len(self.records) != OUTCOME.itemsize * self.count or len(self.key_sizes) % 4:
            raise ValueError(
                f"expected records and sizes of keys of as many outcomes, got {len(self.records)} and "
                f"{len(self.key_sizes)} bytes"
            )
        records, sizes = np.frombuffer(self.records, OUTCOME), np.frombuffer(self.key_sizes, np.int32)
        size = int((sizes.astype(np.int64) + 1).sum())
        if sizes.min(initial=0) < -1 or size != len(self.keys):
            raise ValueError(f"expected keys of {size} bytes by their sizes, got {len(self.keys)}")
        classes, scores = len(self.classes), records["scores"].astype(np.int64)
        for name, column, least, most in (
            ("model", records["model"], 0, len(self.models)),
            ("true_class", records["true_class"], -1, classes),
            ("predicted_class", records["predicted_class"], -1, classes),
            ("label_at_prediction", records["label_at_prediction"], -1, classes),
            ("last_class", records["last_class"], 0, classes + 1),
            ("segments", np.where(scores == -1, -1, scores - SEGMENTS_FROM), -1, len(self.segments)),
        ):
            if not ((column >= least) & (column < most)).all():
                raise ValueError(
                    f"expected numbers from {least} to {most - 1} of outcomes as {name}, "
                    f"got {column.min()} to {column.max()}"
                )
        for carried, column in zip(CARRIED, records["carried"].T, strict=True):
            if not carried.is_valid(column):
                raise ValueError(f"expected {carried.meaning}, got others")
        for text in self.segments:
            segments_of(text)

    @property
    def count(self) -> int:
        """Number of outcomes."""
        return len(self.key_sizes) // 4

    @property
    def size_bytes(self) -> int:
        """Number of bytes of records and keys."""
        return len(self.records) + len(self.keys) + len(self.key_sizes)

    def after(self, count: int) -> KeptOutcomes:
        """Return the outcomes without the first `count`."""
        sizes = np.frombuffer(self.key_sizes, np.int32)
        cut = int(np.maximum(sizes[:count] + 1, 0).sum())
        return msgspec.structs.replace(
            self,
            records=self.records[OUTCOME.itemsize * count :],
            keys=self.keys[cut:],
            key_sizes=self.key_sizes[4 * count :],
        )

    def record_keys(self) -> Keys:
        """Return the keys of the outcomes' records."""
        sizes = np.frombuffer(self.key_sizes, np.int32).astype(np.int64)
        taken = np.maximum(sizes + 1, 0)
        return Keys(np.frombuffer(self.keys, np.uint8).copy(), np.cumsum(taken) - taken, sizes)

    def topic_keys(self) -> tuple[list[str], NDArray[np.int32]]:
        """Return the keys in the topic (models without folds), and the index of each outcome's key."""
        models = [model_of(name) for name in self.models]
        different = {model: number for number, model in enumerate(dict.fromkeys(models))}
        of_each = np.array([different[model] for model in models], np.int32)
        return list(different), of_each[np.frombuffer(self.records, OUTCOME)["model"]]


_CLASSES = ("true_class", "predicted_class", "label_at_prediction")


def _renumbered(
    columns: Sequence[NDArray[Any]], names: Sequence[str]
) -> tuple[list[NDArray[np.int32]], list[str]]:
    """Renumber columns so that only names in use are left; negative numbers become -1."""
    used = np.zeros(max([int(column.max(initial=-1)) for column in columns]) + 2, np.bool_)
    used[0] = True
    for column in columns:
        used[np.maximum(column, -1) + 1] = True
    renumbered = np.cumsum(used, dtype=np.int32) - 2
    chosen: list[int] = (np.flatnonzero(used)[1:] - 1).tolist()
    return [renumbered[np.maximum(column, -1) + 1] for column in columns], [
        names[number] for number in chosen
    ]


def _gathered(keys: Keys) -> tuple[bytes, bytes]:
    """Concatenate the keys, each followed by a byte, and encode their sizes."""
    sizes = keys.sizes.astype(np.int32).tobytes()
    chosen = keys.sizes >= 0
    if not chosen.any():
        return b"", sizes
    own = keys.sizes[chosen]
    gathered = np.empty(int(own.sum()) + len(own), np.uint8)
    gather_texts(keys.texts, keys.starts[chosen], own, gathered)
    return gathered.tobytes(), sizes


# Digests of outcomes and events up to a number, by which two replicas compare their sequences.
#
# The digest up to number n is the sum of the hashes of the first n, modulo 2⁶⁴. Each hash includes the
# number, so that the order matters; as a sum, the digest does not depend on where commits end, which differs
# between replicas. An outcome's hash covers what a commit keeps: names, classes, times and the digest of the
# id, but not scores.
#
# Estimators and detectors are functions of the sequence of outcomes: under equal settings, replicas with
# equal sequences have equal estimators.


_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_MULTIPLIER: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_SHIFT: Final = np.uint64(31)
_NUMBERS: Final = ("low", "high", "event_ms", "delay_ms", "resolved_ms", "waited_ms", "assumed", "made")


class Digests(msgspec.Struct, frozen=True, array_like=True):
    """Digests up to a number of outcomes, and up to a number of events."""

    outcomes: int = 0
    events: int = 0


def added(digest: int, terms: int) -> int:
    """Add terms to a digest."""
    return (digest + terms) & _MASK


def outcome_terms(kept: KeptOutcomes, first: int) -> NDArray[np.uint64]:
    """Hash each outcome with its number.

    Parameters
    ----------
    kept
        Consecutive outcomes.
    first
        Number of the first of them.

    Returns
    -------
    numpy.ndarray
        Hashes, shape (n,); the digest grows by their sum.
    """
    records = np.frombuffer(kept.records, OUTCOME)
    classes = _hashes(kept.classes)
    segments = np.where(records["scores"] >= SEGMENTS_FROM, records["scores"] - SEGMENTS_FROM, -1)
    columns = [
        _hashes(kept.models)[records["model"]],
        *(classes[records[name]] for name in ("true_class", "predicted_class", "label_at_prediction")),
        classes[records["last_class"] - 1],
        _hashes(kept.segments)[segments],
        *(records[name].astype(np.uint64) for name in _NUMBERS),
        *records["carried"].astype(np.uint64).T,
    ]
    with np.errstate(over="ignore"):
        found = (np.arange(first, first + len(records), dtype=np.uint64)) * _GOLDEN
        for column in columns:
            found = (found ^ column) * _MULTIPLIER
            found ^= found >> _SHIFT
    return found


def outcomes_sum(kept: KeptOutcomes, first: int, count: int | None = None) -> int:
    """Sum the hashes of the first `count` outcomes, or of all; the first one has number `first`."""
    terms = outcome_terms(kept, first)[:count]
    return int(terms.sum(dtype=np.uint64)) if len(terms) else 0


def event_term(value: bytes) -> int:
    """Hash an event: its record, which includes its number."""
    return xxhash.xxh3_64_intdigest(value)


def _hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    """Hash each name; a final 0 stands for no name, number -1."""
    return np.array([*(xxhash.xxh3_64_intdigest(name.encode()) for name in names), 0], np.uint64)


# Invalid records that replicas keep in their state until the holder has written them to their topic.
#
# Each has a position in the sequence of evaluation, the same in all replicas: the clock at which it was
# evaluated, and its number among the invalid records of that millisecond. The ledger records the position up
# to which the holder has written. Unlike a count since the beginning, a position does not depend on when a
# replica began to keep records.


RecordPosition: TypeAlias = tuple[int, int]
"""(clock in ms, number among the invalid records of that millisecond, from 1); larger ones come later."""
BEGINNING: Final[RecordPosition] = (-1, 0)
"""Position before the first record."""
MOST_BYTES: Final = 8_388_608
"""Number of bytes of invalid records from which a commit is made for them alone."""


class KeptRecord(msgspec.Struct, frozen=True, array_like=True):
    """One invalid record (a `ports.Record`), with its position and the reason why it is invalid."""

    position: RecordPosition
    reason: Name
    topic: Name
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int
    timestamp_type: int
    fault: Name | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


class RecordKeeper:
    """Assigns positions to invalid records, and keeps them until they are taken for a commit.

    Parameters
    ----------
    reached
        Position up to which the evaluation had come at the last commit.
    clock_ms
        Function that returns the clock of the evaluation at the last record evaluated.
    """

    def __init__(self, reached: RecordPosition, clock_ms: Callable[[], int]) -> None:
        self._reached = reached
        self._clock_ms = clock_ms
        self._kept: list[KeptRecord] = []
        self._bytes = 0

    @property
    def filled(self) -> float:
        """Bytes kept for the next commit, as a share of `MOST_BYTES`; may exceed 1 until the commit."""
        return self._bytes / MOST_BYTES

    def keep(self, record: Record, reason: str, clock_ms: int) -> None:
        """Keep a record when it is evaluated, at `clock_ms`."""
        self._reach(clock_ms)
        self._reached = (self._reached[0], self._reached[1] + 1)
        kept = KeptRecord(
            self._reached,
            reason,
            record.topic,
            record.partition,
            record.offset,
            record.key,
            record.value,
            list(record.headers),
            record.timestamp,
            record.timestamp_type,
            record.fault,
        )
        self._kept.append(kept)
        self._bytes += kept.size_bytes

    def take(self) -> list[KeptRecord]:
        """Return the records kept since the last call, and set `reached` to the position after them."""
        self._reach(self._clock_ms())
        kept, self._kept, self._bytes = self._kept, [], 0
        return kept

    @property
    def reached(self) -> RecordPosition:
        """Position up to which the evaluation had come at the last `take`, or `keep` since."""
        return self._reached

    def _reach(self, clock_ms: int) -> None:
        if clock_ms > self._reached[0]:
            self._reached = (clock_ms, 0)
