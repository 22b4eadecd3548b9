"""What a record costs from fetched bytes to rows, beside msgspec into structs.

    python -m tests.bench.decode

All read the same values in turn, in one process; the lowest of the rounds is shown, in µs of CPU a message
and as a ratio to msgspec, which decodes the fields into a struct and does nothing else (of times, it leaves
the text to Python's `datetime`). `tests.bench.formats` has records of every make beside a plain one.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from streamwatch.core.records.events import Partition
from streamwatch.edge.decoders.formats.json import build, decoded_of
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import ClassOfLargest, TopicMapping
from streamwatch.edge.keys import id_keys
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, gathered
from tests.edge.sources.kafka.batches.pieces import piece_of

RECORDS, CALLS, ROUNDS = 500, 20, 15
AT_MS = 1_700_000_000_000


class Bare(msgspec.Struct, gc=False):
    """What the bare loop reads."""

    id: str
    model: str
    prediction: str
    timestamp: int


class Scored(msgspec.Struct, gc=False):
    """The same with scores by class."""

    id: str
    model: str
    scores: dict[str, float]
    timestamp: int
    prediction: str = ""


class Timed(msgspec.Struct, gc=False):
    """The same with a time as text."""

    id: str
    model: str
    prediction: str
    timestamp: datetime


class Element(msgspec.Struct, gc=False):
    """A model and what it predicted."""

    model: str
    prediction: str


class Several(msgspec.Struct, gc=False):
    """Several models' predictions for an id."""

    id: str
    timestamp: int
    predictions: list[Element]


class ScoredElement(msgspec.Struct, gc=False):
    """A model and its probabilities."""

    model: str
    prediction: str
    scores: dict[str, float]


class SeveralScored(msgspec.Struct, gc=False):
    """The same with scores."""

    id: str
    timestamp: int
    predictions: list[ScoredElement]


class Payload(NamedTuple):
    """Records of one make."""

    mapping: TopicMapping
    bare: Any
    """Struct that holds what the mapping asks for."""
    written: Sequence[bytes]


def fields(n: int, chance: random.Random) -> dict[str, Any]:
    """The fields of an ordinary prediction."""
    return {
        "id": f"{chance.getrandbits(64):016x}",
        "model": f"m{n % 3}",
        "prediction": chance.choice(("legit", "fraud")),
        "timestamp": AT_MS + n,
    }


def values(size: int) -> list[bytes]:
    """Predictions of about so many bytes, with features that nobody asks for."""
    chance = random.Random(size)
    written: list[bytes] = []
    for n in range(RECORDS):
        content = fields(n, chance)
        if size > 200:
            features: dict[str, object] = {f"f{i}": round(chance.gauss(0, 1), 6) for i in range(size // 25)}
            content["features"] = features | {"comment": "x" * (size // 5)}
        written.append(as_bytes(content))
    return written


def scored(classes: int, *, named: bool) -> list[bytes]:
    """Predictions with a probability of each class, written as Python does, and the class itself or not."""
    chance = random.Random(classes)
    written: list[bytes] = []
    for n in range(RECORDS):
        content = fields(n, chance)
        parts = [chance.random() for _ in range(classes)]
        content["scores"] = {f"class-{k}": part / sum(parts) for k, part in enumerate(parts)}
        if not named:
            del content["prediction"]
        written.append(as_bytes(content))
    return written


def timed() -> list[bytes]:
    """Predictions whose times are text."""
    chance = random.Random(0)
    written: list[bytes] = []
    for n in range(RECORDS):
        moment = datetime.fromtimestamp(AT_MS / 1_000 + n * 0.37, UTC)
        written.append(as_bytes(fields(n, chance) | {"timestamp": moment.isoformat()}))
    return written


def several(counts: Sequence[int], *, scores: bool = False) -> list[bytes]:
    """Records of several models, of as many as one of these counts, with three scores each or none."""
    chance = random.Random(sum(counts))
    written: list[bytes] = []
    for n in range(RECORDS):
        content = fields(n, chance)
        each: list[dict[str, object]] = []
        for k in range(chance.choice(counts)):
            parts = [chance.random() for _ in range(3)] if scores else []
            shares = {f"class-{c}": part / sum(parts) for c, part in enumerate(parts)}
            answer = {"model": f"m{k}", "prediction": chance.choice(("legit", "fraud"))}
            each.append(answer | ({"scores": shares} if scores else {}))
        written.append(
            as_bytes({"id": content["id"], "timestamp": content["timestamp"], "predictions": each})
        )
    return written


def as_bytes(content: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(content, separators=(",", ":")).encode()


def payloads() -> dict[str, Payload]:
    """Records of each make, by what the table calls them."""
    largest = TopicMapping(prediction=ClassOfLargest("value.scores"))
    elements = TopicMapping(
        id="value.id",
        model="value.predictions[].model",
        prediction="value.predictions[].prediction",
        scores=None,
        fold=None,
    )
    return {
        "thin": Payload(TopicMapping(), Bare, values(80)),
        "fat": Payload(TopicMapping(), Bare, values(1_000)),
        "three scores": Payload(TopicMapping(), Scored, scored(3, named=True)),
        "class of three scores": Payload(largest, Scored, scored(3, named=False)),
        "a hundred scores": Payload(TopicMapping(), Scored, scored(100, named=True)),
        "times in ISO 8601": Payload(TopicMapping(timestamp_unit="iso8601"), Timed, timed()),
        "three models a record": Payload(elements, Several, several([3])),
        "one to five models a record": Payload(elements, Several, several(range(1, 6))),
        "three models with scores": Payload(
            replace(elements, scores="value.predictions[].scores"), SeveralScored, several([3], scores=True)
        ),
    }


def microseconds(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """CPU of each, a message; they take turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, contender in contenders.items():
            began = time.process_time()
            for _ in range(CALLS):
                contender()
            best[name] = min(best[name], 1e6 * (time.process_time() - began) / CALLS / RECORDS)
    return best


def contenders(payload: Payload) -> dict[str, Callable[[], object]]:
    """Ways from these values to columns or objects."""
    bare = msgspec.json.Decoder(payload.bare).decode
    records = [KafkaRecord("p", 0, n, AT_MS + n, None, value) for n, value in enumerate(payload.written)]
    stamps = [record.timestamp for record in records]
    fetched = gathered(Partition("p", 0), [piece_of(records)])
    texts, digests = (
        build(DecoderSpec("p", "prediction", payload.mapping, keys), FormatOptions())
        for keys in (None, id_keys("", digest=True))
    )
    for decoder in (texts, digests):
        for _ in range(2):
            batch = decoder.decode_batch(fetched)
        expected = decoder.decode_all(records, stamps)
        if decoded_of(batch) != expected:
            raise SystemExit("rows and events differ")
    return {
        "bare msgspec": lambda: [bare(value) for value in payload.written],
        "rows, keys as text": lambda: texts.decode_batch(fetched),
        "rows, keys as digests": lambda: digests.decode_batch(fetched),
        "events, without rows": lambda: texts.decode_all(records, stamps),
    }


def main() -> None:
    """Print the table."""
    for title, payload in payloads().items():
        found = microseconds(contenders(payload))
        sys.stdout.write(f"{title}: {sum(map(len, payload.written)) / RECORDS:.0f} bytes\n")
        for name, cost in found.items():
            sys.stdout.write(f"  {name:24s} {cost:6.3f} µs  {cost / found['bare msgspec']:5.2f} ×\n")


if __name__ == "__main__":
    main()
