"""Makes of messages: how each is written, what the daemon is told of it, and what the bare loop decodes.

The bare loop decodes each make as well as it can be done from Python: JSON into msgspec structs that hold the
fields the daemon reads, Avro into dicts by fastavro.
"""

from __future__ import annotations

import io
import json
import os
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import fastavro
import msgspec
from fastavro.schema import parse_schema

from streamwatch.demo.simulated import StreamSpec

PAYLOAD: Final = "BENCH_PAYLOAD"
"""Variable of the environment that names the make of the messages."""
AVRO: Final = {side: Path(__file__).parent / f"{side}.avsc" for side in ("prediction", "label")}

Document = dict[str, Any]
Decode = Callable[[bytes], object]


class Prediction(msgspec.Struct, gc=False):
    """Fields of a plain prediction."""

    id: str
    timestamp: int
    model: str
    prediction: str


class InFold(Prediction, gc=False):
    """The same with the fold that predicted."""

    fold: int


class Scored(Prediction, gc=False):
    """The same with a score of each class."""

    scores: dict[str, float]


class Segmented(Prediction, gc=False):
    """The same with the values of two segments."""

    country: str
    channel: str


class Numbered(msgspec.Struct, gc=False):
    """A prediction whose id is a number."""

    id: int
    timestamp: int
    model: str
    prediction: str


class NumberedLabel(msgspec.Struct, gc=False):
    """A label whose id is a number."""

    id: int
    timestamp: int
    label: str
    model: str | None = None


class Full(Scored, gc=False):
    """A prediction with scores and the values of two segments."""

    country: str
    channel: str


class TimedPrediction(msgspec.Struct, gc=False):
    """A prediction whose time is text."""

    id: str
    timestamp: datetime
    model: str
    prediction: str


class Element(msgspec.Struct, gc=False):
    """What one model predicted."""

    id: str
    model: str
    prediction: str


class Several(msgspec.Struct, gc=False):
    """What several models predicted for an id, in one record."""

    timestamp: int
    predictions: list[Element]


class Label(msgspec.Struct, gc=False):
    """Fields of a label."""

    id: str
    timestamp: int
    label: str
    model: str | None = None


class TimedLabel(msgspec.Struct, gc=False):
    """A label whose time is text."""

    id: str
    timestamp: datetime
    label: str
    model: str | None = None


def as_json(document: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(document, separators=(",", ":")).encode()


def into(kind: type[msgspec.Struct]) -> Decode:
    """Decode JSON into a struct."""
    return msgspec.json.Decoder(kind).decode


@dataclass(frozen=True, slots=True)
class Payload:
    """One make of messages."""

    prediction: Callable[[Sequence[Document]], bytes] = lambda told: as_json(told[0])
    """Value of a record: of one prediction, or of all those of an id where they are `together`."""
    label: Callable[[Document], bytes] = as_json
    decode_predictions: Callable[[], Decode] = lambda: into(Prediction)
    decode_labels: Callable[[], Decode] = lambda: into(Label)
    together: bool = False
    """Whether the predictions of an id are one record."""
    predictions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the daemon is told of the topic of predictions beside its name."""
    labels: Mapping[str, Any] = field(default_factory=dict[str, Any])


def scored(classes: int, *, segments: bool = False) -> Payload:
    """Predictions with so many scores, which sum to 1, and perhaps with the values of two segments."""
    chance = Random(classes)
    known = StreamSpec().classes
    names = [*known, *(f"class-{k}" for k in range(len(known), classes))][:classes]
    drawn: list[dict[str, float]] = []
    for _ in range(499):
        parts = [chance.random() for _ in names]
        drawn.append({name: round(part / sum(parts), 6) for name, part in zip(names, parts, strict=True)})

    def write(told: Sequence[Document]) -> bytes:
        values = drawn_segments(chance) if segments else {}
        return as_json({**told[0], "scores": drawn[chance.randrange(len(drawn))], **values})

    if segments:
        return Payload(write, decode_predictions=lambda: into(Full), predictions=SEGMENTS)
    return Payload(write, decode_predictions=lambda: into(Scored))


SEGMENTS: Final = {"mapping": {"segments": {"country": "value.country", "channel": "value.channel"}}}


def drawn_segments(chance: Random) -> Document:
    """Values of two segments, of 20 and of 3."""
    country = f"country-{min(int(chance.expovariate(0.3)), 19)}"
    return {"country": country, "channel": chance.choice(("web", "app", "shop"))}


CLASSES: Final = {"twenty classes": 20, "thousand classes": 1_000}
"""Number of classes, by the payload that has many."""


def one_of_many(id_: str, name: str, classes: int) -> str:
    """Class that stands for one of the stream's few in what is said of an id.

    All of an id move on by the same number, which is small as a rule, so hits stay hits and some classes are
    rarer than others.
    """
    drawn = zlib.crc32(id_.encode())
    moved = drawn % classes * (drawn // classes % classes) // classes
    return f"class-{(StreamSpec().classes.index(name) + moved) % classes:02}"


def of_many_classes(classes: int) -> Payload:
    """Plain records whose classes are of so many."""

    def write(field_: str, document: Document) -> bytes:
        return as_json({**document, field_: one_of_many(document["id"], document[field_], classes)})

    return Payload(lambda told: write("prediction", told[0]), lambda document: write("label", document))


TENANTS: Final = 3_333
"""Number of customers of the payload with very many models: each has its own three."""


def of_many_models() -> Payload:
    """Each id is of one of many customers, each of which has models of its own."""

    def write(told: Sequence[Document]) -> bytes:
        tenant = zlib.crc32(told[0]["id"].encode()) % TENANTS
        return as_json({**told[0], "model": f"{told[0]['model']}-{tenant}"})

    return Payload(write)


def with_uuids() -> Payload:
    """Ids are UUIDs."""

    def renamed(document: Document) -> bytes:
        return as_json({**document, "id": str(uuid.uuid5(uuid.NAMESPACE_OID, document["id"]))})

    return Payload(lambda told: renamed(told[0]), renamed)


def with_numbers() -> Payload:
    """Ids are JSON numbers of nine digits."""

    def renamed(document: Document) -> bytes:
        return as_json({**document, "id": 100_000_000 + int(document["id"].rpartition("-")[2])})

    return Payload(
        lambda told: renamed(told[0]), renamed, lambda: into(Numbered), lambda: into(NumberedLabel)
    )


def in_folds() -> Payload:
    """Each model of the stream is a fold of one model."""
    folds: dict[str, int] = {}

    def write(told: Sequence[Document]) -> bytes:
        fold = folds.setdefault(told[0]["model"], len(folds))
        return as_json({**told[0], "model": "fraud-v1", "fold": fold})

    return Payload(write, decode_predictions=lambda: into(InFold))


def segmented() -> Payload:
    """Predictions with two segments, of 20 and of 3 values."""
    chance = Random(20)

    def write(told: Sequence[Document]) -> bytes:
        return as_json({**told[0], **drawn_segments(chance)})

    return Payload(write, decode_predictions=lambda: into(Segmented), predictions=SEGMENTS)


def timed() -> Payload:
    """Times as ISO 8601 with milliseconds and offset."""

    def text(document: Document) -> bytes:
        moment = datetime.fromtimestamp(document["timestamp"] / 1_000, UTC)
        return as_json({**document, "timestamp": moment.isoformat(timespec="milliseconds")})

    told = {"mapping": {"timestamp_unit": "iso8601"}}
    return Payload(
        lambda documents: text(documents[0]),
        text,
        lambda: into(TimedPrediction),
        lambda: into(TimedLabel),
        predictions=told,
        labels=told,
    )


def in_avro() -> Payload:
    """Avro without a header, by the schemas beside this module."""
    schemas = {side: parse_schema(json.loads(file.read_text())) for side, file in AVRO.items()}

    def write(side: str, document: Document) -> bytes:
        written = io.BytesIO()
        fastavro.schemaless_writer(written, schemas[side], document)
        return written.getvalue()

    def reading(side: str) -> Decode:
        schema, read = schemas[side], fastavro.schemaless_reader
        return lambda value: read(io.BytesIO(value), schema, None)

    def told(side: str) -> Mapping[str, Any]:
        return {"format": {"type": "avro", "schema_file": str(AVRO[side])}}

    return Payload(
        lambda documents: write("prediction", documents[0]),
        lambda document: write("label", document),
        lambda: reading("prediction"),
        lambda: reading("label"),
        predictions=told("prediction"),
        labels=told("label"),
    )


def together() -> Payload:
    """All predictions of an id as elements of one record."""

    def write(documents: Sequence[Document]) -> bytes:
        elements = [{name: each[name] for name in ("id", "model", "prediction")} for each in documents]
        return as_json({"timestamp": documents[0]["timestamp"], "predictions": elements})

    mapping = {name: f"value.predictions[].{name}" for name in ("id", "model", "prediction")}
    return Payload(
        write,
        decode_predictions=lambda: into(Several),
        together=True,
        predictions={"mapping": {**mapping, "scores": None, "fold": None}},
    )


PAYLOADS: Final[Mapping[str, Callable[[], Payload]]] = {
    "plain": Payload,
    **{name: partial(of_many_classes, classes) for name, classes in CLASSES.items()},
    "ten thousand models": of_many_models,
    "uuids": with_uuids,
    "numbers": with_numbers,
    "folds": in_folds,
    "three scores": lambda: scored(3),
    "hundred scores": lambda: scored(100),
    "iso": timed,
    "avro": in_avro,
    "segments": segmented,
    "scores and segments": lambda: scored(3, segments=True),
    "array": together,
}


def payload_of(environment: Mapping[str, str] = os.environ) -> Payload:
    """The make of messages that the environment names; plain ones if it names none."""
    return PAYLOADS[environment.get(PAYLOAD, "plain")]()


def records_of(
    payload: Payload, due: Iterable[tuple[str, float, bytes, bytes]], models: int
) -> Iterable[tuple[str, float, bytes, bytes, int]]:
    """Write plain JSON records in another make.

    Parameters
    ----------
    payload
        The make.
    due
        Side, time, key and value of plain records; predictions of an id follow each other.
    models
        Predictions of each id.

    Yields
    ------
    Side, time, key and value of each record, and how many events it has.
    """
    gathered: list[Document] = []
    for side, at_s, key, value in due:
        document = json.loads(value)
        if side == "label":
            yield side, at_s, key, payload.label(document), 1
            continue
        gathered.append(document)
        if len(gathered) == (models if payload.together else 1):
            yield side, at_s, key, payload.prediction(gathered), len(gathered)
            gathered.clear()
