"""Records of the results topic: models and counters of a distributed run, one value for each key.

The topic is compacted and has one partition. All records of a batch are written in one transaction; the
last of them is the mark of the batch. A repeated batch has the same number and contents, and readers use each
batch once. So results never go back, and a batch is seen whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from streamwatch.core.records.events import Name, Partition

VERSION: Final = 1
MOST_BYTES: Final = 67_108_864
"""Most bytes of a record; a snapshot of a model with a thousand classes has some millions."""
MARK: Final = "batch"
"""Kind of result: mark that ends a batch (`BatchMark`); its name is empty."""
LOSS: Final = "loss"
"""Kind of result: records missing from topics (`DataLoss`), named by the range of the loss."""
WATERMARK: Final = "watermark"
"""Kind of result: newest record time read of a partition, named by topic and partition."""
SEPARATOR: Final = "/"


class ResultsFormatError(ValueError):
    """Record of the results topic that cannot be read, or is of another version."""


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """One record of the topic."""

    life: str
    """Identity of the state of the job that wrote the record; batches of another state count from 0 again."""
    batch: int
    """Number of the batch, from 0."""
    kind: str
    name: str
    """Name of the result within its kind; both together are the record's key."""
    body: bytes
    """Encoded result; empty if the result was removed."""

    @property
    def key(self) -> bytes:
        """Key of the record."""
        return f"{self.kind}{SEPARATOR}{self.name}".encode()

    def value(self) -> bytes:
        """Value of the record."""
        return msgspec.msgpack.encode((VERSION, self.life, self.batch, self.body))


def result_of(key: bytes, value: bytes | None) -> ResultRecord:
    """Read a record of the topic; raises ResultsFormatError.

    A record without a value deletes the result of its key; its `life` is empty and its `batch` 0.
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
    """Record time up to which the batch is complete."""
    positions: dict[Name, dict[Name, int]] = {}
    """Offset after the last record by topic and partition."""
    waiting: dict[Name, int] = {}
    """Records beyond the batch when its end was chosen, by topic."""


_MARK: Final = msgspec.msgpack.Decoder(BatchMark)


def mark_of(body: bytes) -> BatchMark:
    """Read the body of a mark; raises ResultsFormatError."""
    try:
        return _MARK.decode(body)
    except (ValueError, RecursionError) as error:  # MsgspecError and UnicodeDecodeError are ValueErrors
        raise ResultsFormatError(f"expected the mark of a batch: {error}") from error


class DataLoss(msgspec.Struct, frozen=True, array_like=True):
    """Body of a result about data loss: how often, and how many records, by cause."""

    times: dict[Name, int] = {}
    records: dict[Name, int] = {}


def encode_mark(mark: BatchMark) -> bytes:
    """Encode the body of a mark."""
    return msgspec.msgpack.encode(mark)


def encode_data_loss(lost: DataLoss) -> bytes:
    """Encode the body of a data loss."""
    return msgspec.msgpack.encode(lost)


def encode_watermark(partition: Partition, record_ms: int) -> tuple[str, bytes]:
    """Encode a watermark as the name and the body of its result."""
    topic, number = partition
    return f"{topic}{SEPARATOR}{number}", msgspec.msgpack.encode((topic, number, record_ms))


def watermark_of(body: bytes) -> tuple[Partition, int]:
    """Read the body of a watermark: partition and milliseconds since the epoch; raises ResultsFormatError."""
    try:
        topic, number, record_ms = msgspec.msgpack.decode(body, type=tuple[Name, int, int])
    except (ValueError, RecursionError) as error:  # MsgspecError and UnicodeDecodeError are ValueErrors
        raise ResultsFormatError(f"expected a watermark: {error}") from error
    return Partition(topic, number), record_ms


def total_data_loss(several: Iterable[DataLoss]) -> DataLoss:
    """Sum data losses, by cause."""
    times, records = Counter[str](), Counter[str]()
    for each in several:
        times.update(each.times)
        records.update(each.records)
    return DataLoss(dict(times), dict(records))


def data_loss_of(body: bytes) -> DataLoss:
    """Read the body of a data loss; raises ResultsFormatError."""
    try:
        decoded: Any = msgspec.msgpack.decode(body, type=DataLoss)
    except (ValueError, RecursionError) as error:  # MsgspecError and UnicodeDecodeError are ValueErrors
        raise ResultsFormatError(f"expected what was lost: {error}") from error
    return decoded
