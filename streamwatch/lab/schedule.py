"""When each record of a synthetic stream is due: predictions at a steady rate, labels after a delay."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from streamwatch.lab.streams.simulated import StreamSpec, blocks


@dataclass(frozen=True, slots=True)
class Due:
    """One record, `at_s` seconds of stream time after the start."""

    at_s: float
    side: Literal["prediction", "label"]
    instance: int
    key: bytes
    value: bytes


class _Event(msgspec.Struct, omit_defaults=True):
    """The fields of both kinds, by their default names; `timestamp` in milliseconds since the epoch."""

    id: str
    timestamp: int
    model: str | None = None
    prediction: str | None = None
    label: str | None = None
    scores: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """Layout of a stream in time.

    `instances` None is endless. `rate` is instances per second of stream time. `start_ms` is the epoch time
    of the first; `run` prefixes the ids, so that two runs into one topic do not meet. Delays are divided by
    `time_scale`.
    """

    stream: StreamSpec
    rate: float
    start_ms: int
    run: str
    instances: int | None = None
    scores: bool = False
    time_scale: float = 1.0


def schedule(spec: ScheduleSpec) -> Iterator[Due]:
    """All records in the order they are due; labels that outlast the last prediction come after it."""
    encoder = msgspec.json.Encoder()
    names, classes = spec.stream.model_names, spec.stream.classes
    waiting: list[tuple[float, int, str]] = []  # (due, instance, class): labels to come
    for block in blocks(spec.stream):
        for row in range(len(block.true_class)):
            instance = block.first + row
            if spec.instances is not None and instance >= spec.instances:
                while waiting:
                    yield _label(encoder, spec, heapq.heappop(waiting))
                return
            at_s = instance / spec.rate
            while waiting and waiting[0][0] <= at_s:
                yield _label(encoder, spec, heapq.heappop(waiting))
            name = f"{spec.run}-{instance}"
            record_ms = spec.start_ms + round(at_s * 1000.0)
            for model, predicted_class in enumerate(block.predicted_class[:, row].tolist()):
                scores = None
                if spec.scores:
                    shares = block.scores[model, row].tolist()
                    scores = {c: round(s, 4) for c, s in zip(classes, shares, strict=True)}
                value = _Event(
                    id=name,
                    timestamp=record_ms,
                    model=names[model],
                    prediction=classes[predicted_class],
                    scores=scores,
                )
                yield Due(at_s, "prediction", instance, name.encode(), encoder.encode(value))
            delay_s = float(block.delay_s[row]) / spec.time_scale
            if not math.isnan(delay_s):
                heapq.heappush(waiting, (at_s + delay_s, instance, classes[int(block.true_class[row])]))


def _label(encoder: msgspec.json.Encoder, spec: ScheduleSpec, waiting: tuple[float, int, str]) -> Due:
    at_s, instance, label = waiting
    name = f"{spec.run}-{instance}"
    value = _Event(id=name, timestamp=spec.start_ms + round(at_s * 1000.0), label=label)
    return Due(at_s, "label", instance, name.encode(), encoder.encode(value))
