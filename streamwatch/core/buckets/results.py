"""Records of the results topic: models and counters of a distributed run, one value for each key.

The topic is compacted and has one partition. All records of a batch are written in one transaction, the
last of which is its mark. A batch that is written again has the number and the contents it had; whoever
reads takes a batch once. So what is shown never goes back, and a batch is seen whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from streamwatch.core.events import Name, Partition

VERSION: Final = 1
MARK: Final = "batch"
"""Kind of the record that ends a batch; its name is empty."""
LOSS: Final = "loss"
"""Kind of what was missing of the topics, by the range that lacked it."""
WATERMARK: Final = "watermark"
"""Kind of the newest record time of a partition among what was read, by topic and partition."""
SEPARATOR: Final = "/"


class ResultsFormatError(ValueError):
    """A record of the results topic is none of this version."""


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """One record of the topic."""

    life: str
    """Name of the state of the job that wrote it: batches of another one are counted anew."""
    batch: int
    kind: str
    name: str
    """What it is of; kind and name together are the key."""
    body: bytes
    """Empty for what is no longer there."""

    @property
    def key(self) -> bytes:
        """Key of the record."""
        return f"{self.kind}{SEPARATOR}{self.name}".encode()

    def value(self) -> bytes:
        """Value of the record."""
        return msgspec.msgpack.encode((VERSION, self.life, self.batch, self.body))


def result_of(key: bytes, value: bytes | None) -> ResultRecord:
    """Read a record of the topic; raises ResultsFormatError.

    One without a value deletes that of its key; it does not have its job and batch.
    """
    try:
        kind, _, name = key.decode().partition(SEPARATOR)
        if value is None:
            return ResultRecord("", 0, kind, name, b"")
        version, life, batch, body = msgspec.msgpack.decode(value, type=tuple[int, str, int, bytes])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ResultsFormatError(f"expected a record of results, got another: {error}") from error
    if version != VERSION:
        raise ResultsFormatError(f"expected results of version {VERSION}, got {version}")
    return ResultRecord(life, batch, kind, name, body)


class BatchMark(msgspec.Struct, frozen=True, array_like=True):
    """Body of the mark of a batch."""

    life: str
    end_ms: int
    """Record time up to which the batch goes."""
    positions: dict[Name, dict[Name, int]] = {}
    """Offset after the last record by topic and partition."""
    waiting: dict[Name, int] = {}
    """Records beyond the batch when its end was chosen, by topic."""


_MARK: Final = msgspec.msgpack.Decoder(BatchMark)


def mark_of(body: bytes) -> BatchMark:
    """Read the body of a mark; raises ResultsFormatError."""
    try:
        return _MARK.decode(body)
    except msgspec.MsgspecError as error:
        raise ResultsFormatError(f"expected the mark of a batch: {error}") from error


class DataLoss(msgspec.Struct, frozen=True, array_like=True):
    """Body of a result about data loss: how often, and how many records, by cause."""

    times: dict[Name, int] = {}
    records: dict[Name, int] = {}


def encode_mark(mark: BatchMark) -> bytes:
    """The body of a mark."""
    return msgspec.msgpack.encode(mark)


def encode_data_loss(lost: DataLoss) -> bytes:
    """The body of a loss."""
    return msgspec.msgpack.encode(lost)


def encode_watermark(partition: Partition, record_ms: int) -> tuple[str, bytes]:
    """The name and the body of a watermark."""
    topic, number = partition
    return f"{topic}{SEPARATOR}{number}", msgspec.msgpack.encode((topic, number, record_ms))


def watermark_of(body: bytes) -> tuple[Partition, int]:
    """Read the body of a watermark: partition and milliseconds since the epoch; raises ResultsFormatError."""
    try:
        topic, number, record_ms = msgspec.msgpack.decode(body, type=tuple[Name, int, int])
    except msgspec.MsgspecError as error:
        raise ResultsFormatError(f"expected a watermark: {error}") from error
    return Partition(topic, number), record_ms


def total_data_loss(several: Iterable[DataLoss]) -> DataLoss:
    """Add losses up."""
    times, records = Counter[str](), Counter[str]()
    for each in several:
        times.update(each.times)
        records.update(each.records)
    return DataLoss(dict(times), dict(records))


def data_loss_of(body: bytes) -> DataLoss:
    """Read the body of a loss; raises ResultsFormatError."""
    try:
        decoded: Any = msgspec.msgpack.decode(body, type=DataLoss)
    except msgspec.MsgspecError as error:
        raise ResultsFormatError(f"expected what was lost: {error}") from error
    return decoded
