"""State of the watched models as bytes, without features of classes that no prediction had."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from streamwatch.core.predictions.early_hints.state import CLASSES, EARLY, LAG, SCORE

_BY_FEATURE: Final = ("block", "queue", "capital", "now")
_BY_STRETCH: Final = ("stamp", "counts")
_OTHERS: Final = tuple(name for name in EARLY.names or () if name not in {*_BY_FEATURE, *_BY_STRETCH})


class KeptModel(msgspec.Struct, frozen=True, array_like=True):
    """State of one model: its classes, scalars and bins, and what is stored by feature and by stretch."""

    name: str
    classes: list[str]
    others: bytes
    by_feature: list[bytes]
    stamps: list[int]
    """Stamps of the stretches by ring position, 0 if unused, up to the last in use."""
    counts: list[int]
    """Counts of the stretches in use, in that order; as a list, since most numbers are small."""

    @classmethod
    def of(cls, name: str, classes: list[str], record: np.void) -> KeptModel:
        """Convert a record `EARLY`; the queue starts from its oldest block."""
        used = _used(len(classes))
        queue = np.roll(record["queue"], -int(record["head"]), axis=0)
        by_feature = [record["block"], queue, record["capital"], record["now"]]
        parts = [(values[:, used] if values is queue else values[used]).tobytes() for values in by_feature]
        stamps = record["stamp"]
        last = int(np.flatnonzero(stamps).max(initial=-1)) + 1
        counts = record["counts"][stamps > 0].ravel().tolist()
        others = b"".join(record[each].tobytes() for each in _OTHERS)
        return cls(name, classes, others, parts, stamps[:last].tolist(), counts)

    def record(self) -> np.void:
        """Convert back to a record `EARLY`; raises ValueError if lengths do not fit."""
        record = np.zeros(1, EARLY)
        at = 0
        for name in _OTHERS:
            kind = EARLY[name]
            record[name][0] = np.frombuffer(self.others, kind.base, int(np.prod(kind.shape)), at).reshape(
                kind.shape
            )
            at += kind.itemsize
        # Bets on classes that never occurred have neither won nor lost.
        record["capital"] = float(record["rounds"][0])
        used = _used(len(self.classes))
        for name, body in zip(_BY_FEATURE, self.by_feature, strict=True):
            own: Any = record[name][0]
            values = np.frombuffer(body, own.dtype)
            if name == "queue":
                own[:, used] = np.roll(values.reshape(LAG, len(used)), int(record["head"][0]), axis=0)
            else:
                own[used] = values.reshape(len(used), *own.shape[1:])
        record["stamp"][0, : len(self.stamps)] = self.stamps
        slots = np.flatnonzero(record["stamp"][0])
        shape = EARLY["counts"].shape[1:]
        record["counts"][0, slots] = np.array(self.counts, np.int32).reshape(len(slots), *shape)
        return record[0]


def _used(classes: int) -> list[int]:
    """Features of a model with this many classes: these, all others as one, and the score."""
    return [*range(classes), *range(CLASSES, SCORE + 1)]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[KeptModel])


def encode(models: list[KeptModel]) -> bytes:
    """Encode models."""
    return _ENCODER.encode(models)


def decode(snapshot: bytes) -> list[KeptModel]:
    """Decode models; raises ValueError if the bytes are not a snapshot."""
    return _DECODER.decode(snapshot)
