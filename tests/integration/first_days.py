"""Topics as companies have them, one story in each shape: what was predicted, what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.edge.decoders.schemas.avro_bytes import EVENT, event, framed
from tests.inspection.story import Item, iso
from tests.integration.apicurio import Apicurio

CLASSES = ("legit", "fraud")
TRUTH = """syntax = "proto3"; package shop;
message Truth { string transaction = 1; string verdict = 2; }"""


@dataclass
class Sent:
    """A record on its way; `side` says on which of the two topics."""

    side: Literal["predictions", "labels"]
    record_ms: int
    value: bytes
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Day:
    """A kind of payload, and what the settings must say that `inspect` writes of it."""

    name: str
    records: Callable[[Sequence[Item], Apicurio | None], Iterator[Sent]]
    model: str
    settings: Sequence[str]
    needs_registry: bool = False


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _label(item: Item, id_: str, **more: Any) -> Sent:
    return Sent("labels", item.labelled_ms, _json({"id": id_, "label": item.true} | more))


def _pairs(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Two requests a call."""
    yield from zip(items[::2], items[1::2], strict=True)


def _shares(item: Item) -> list[float]:
    """Probabilities in the order of `CLASSES`."""
    return [item.score if name == item.predicted else 1 - item.score for name in CLASSES]


def _flat(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    for item in items:
        value = {"id": item.uuid, "model": "fraud-v3", "prediction": item.predicted}
        yield Sent("predictions", item.made_ms, _json(value))
        yield _label(item, item.uuid)


def _nested(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    for item in items:
        transaction = {"uuid": item.uuid, "amount": item.amount, "customer": {"no": item.user}}
        answer = {"model": {"name": "fraud-v3"}, "decision": item.predicted.upper()}
        value = {"transaction": transaction, "answer": answer, "scored_at": iso(item.made_ms)}
        yield Sent("predictions", item.made_ms, _json(value), key=item.user)
        yield Sent("labels", item.labelled_ms, _json({"result": item.true}), key=item.uuid)


def _threshold(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    for item in items:
        value = {"tx": item.uuid, "model": "fraud-v3", "p_fraud": _shares(item)[1]}
        yield Sent("predictions", item.made_ms, _json(value))
        yield Sent("labels", item.labelled_ms, _json({"tx": item.uuid, "is_fraud": item.true == "fraud"}))


def _kserve_v1(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    kind = "org.kubeflow.serving.inference"
    for calls in _pairs(items):
        first = calls[0]
        head = {"specversion": "1.0", "id": first.uuid, "source": "kserve", "inferenceservicename": "fraud"}
        request = head | {"type": f"{kind}.request", "data": {"instances": [[item.amount] for item in calls]}}
        yield Sent("predictions", first.made_ms, _json(request))
        answer = {"predictions": [_shares(item) for item in calls]}
        response = head | {"type": f"{kind}.response", "data": answer}
        yield Sent("predictions", first.made_ms, _json(response))
        for at, item in enumerate(calls):
            yield _label(item, f"{first.uuid}#{at}")


def _kserve_v2(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    for calls in _pairs(items):
        ids = {"name": "tx", "shape": [2], "datatype": "BYTES", "data": [item.uuid for item in calls]}
        label = {"name": "class", "shape": [2], "datatype": "BYTES"}
        label["data"] = [item.predicted for item in calls]
        response = {"model_name": "fraud", "outputs": [label]}
        value = {"request": {"id": calls[0].user, "inputs": [ids]}, "response": response}
        yield Sent("predictions", calls[0].made_ms, _json(value))
        for item in calls:
            yield _label(item, item.uuid)


def _seldon(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    kind = "io.seldon.serving.inference"
    for calls in _pairs(items):
        first = calls[0]
        head = {"ce_specversion": "1.0", "ce_source": "seldon", "ce_requestid": first.uuid}
        head["ce_inferenceservicename"] = "fraud"
        own = {"ce_id": f"{first.uuid}-q", "ce_type": f"{kind}.request"}
        request = {"data": {"ndarray": [[item.amount, 1] for item in calls]}}
        yield Sent("predictions", first.made_ms, _json(request), headers=head | own)
        own = {"ce_id": f"{first.uuid}-a", "ce_type": f"{kind}.response"}
        data = {"names": list(CLASSES), "ndarray": [_shares(item) for item in calls]}
        yield Sent("predictions", first.made_ms, _json({"data": data, "meta": {}}), headers=head | own)
        for at, item in enumerate(calls):
            yield _label(item, f"{first.uuid}#{at}")


def _structured(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    for item in items:
        head = {"specversion": "1.0", "id": item.uuid[::-1], "source": "/fraud/v3", "type": "shop.scored"}
        data = {"tx": item.uuid, "model": "fraud-v3", "decision": item.predicted}
        yield Sent("predictions", item.made_ms, _json(head | {"time": iso(item.made_ms), "data": data}))
        head = {"specversion": "1.0", "id": item.uuid[:8], "source": "/bank", "type": "bank.closed"}
        value = head | {"subject": item.uuid, "data": {"result": item.true}}
        yield Sent("labels", item.labelled_ms, _json(value))


def _binary(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    for item in items:
        head = {"ce_specversion": "1.0", "ce_id": item.uuid[::-1], "ce_source": "/fraud/v3"}
        head |= {"ce_type": "shop.scored", "ce_subject": item.uuid, "content-type": "application/json"}
        value = {"model": "fraud-v3", "decision": item.predicted}
        yield Sent("predictions", item.made_ms, _json(value), headers=head)
        yield _label(item, item.uuid)


def _debezium(items: Sequence[Item], _: Apicurio | None) -> Iterator[Sent]:
    source = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders"}
    for item in items:
        value = {"id": item.uuid, "model": "fraud-v3", "prediction": item.predicted}
        yield Sent("predictions", item.made_ms, _json(value))
        row = {"order_ref": item.uuid, "total": str(item.amount), "disputed": None}
        for op, ms, truth in (("c", item.made_ms, None), ("u", item.labelled_ms, item.true)):
            change = {"before": None, "after": row | {"disputed": truth}, "source": source, "op": op}
            payload = {"schema": None, "payload": change | {"ts_ms": ms}}
            yield Sent("labels", ms, _json(payload), key=json.dumps({"order_ref": item.uuid}))


def _avro(items: Sequence[Item], registry: Apicurio | None) -> Iterator[Sent]:
    assert registry is not None
    schema = registry.register("scored-value", json.dumps(EVENT))
    for item in items:
        contents = event(item.uuid, "fraud-v3", CLASSES.index(item.predicted), item.made_ms)
        yield Sent("predictions", item.made_ms, framed(schema, contents))
        yield _label(item, item.uuid)


def _text_field(number: int, text: str) -> bytes:
    """A text of less than 128 bytes, by the encoding's documentation."""
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def _protobuf(items: Sequence[Item], registry: Apicurio | None) -> Iterator[Sent]:
    assert registry is not None
    schema = registry.register("truth-value", TRUTH, "PROTOBUF")
    for item in items:
        value = {"id": item.uuid, "model": "fraud-v3", "prediction": item.predicted}
        yield Sent("predictions", item.made_ms, _json(value))
        contents = b"\0" + _text_field(1, item.uuid) + _text_field(2, item.true)
        yield Sent("labels", item.labelled_ms, framed(schema, contents))


def _json_schema(items: Sequence[Item], registry: Apicurio | None) -> Iterator[Sent]:
    assert registry is not None
    text = json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})
    schema = registry.register("decided-value", text, "JSON")
    for item in items:
        value = {"tx": item.uuid, "model": "fraud-v3", "decided": item.predicted}
        yield Sent("predictions", item.made_ms, framed(schema, _json(value)))
        yield _label(item, item.uuid)


_SHARES = "largest: 'value.predictions[]', classes: [legit, fraud]"
DAYS = (
    Day("flat JSON", _flat, "fraud-v3", ["id: value.id", "prediction: value.prediction"]),
    Day(
        "nested JSON, the label's id in its key",
        _nested,
        "fraud-v3",
        ["id: value.transaction.uuid", "id: key", "model: value.answer.model.name", "iso8601"],
    ),
    Day(
        "a score and a threshold",
        _threshold,
        "fraud-v3",
        ["{score: value.p_fraud, threshold: 0.5, above: 'true', below: 'false'}"],
    ),
    Day("KServe v1", _kserve_v1, "fraud", ["envelope: kserve_v1", _SHARES]),
    Day("KServe v2", _kserve_v2, "fraud", ["envelope: kserve_v2", "id: value.inputs.tx[]"]),
    Day("Seldon", _seldon, "fraud", ["envelope: seldon", "largest: 'value.columns[]'"]),
    Day("CloudEvents, structured", _structured, "fraud-v3", ["envelope: cloudevents", "id: value.subject"]),
    Day("CloudEvents, binary", _binary, "fraud-v3", ["envelope: cloudevents", "value.data.decision"]),
    Day("Debezium", _debezium, "fraud-v3", ["envelope: debezium", "label: value.disputed"]),
    Day("Avro", _avro, "fraud-v3", ["format: avro", "prediction: value.prediction"], needs_registry=True),
    Day(
        "Protocol Buffers", _protobuf, "fraud-v3", ["format: protobuf", "value.verdict"], needs_registry=True
    ),
    Day(
        "JSON Schema", _json_schema, "fraud-v3", ["format: json_schema", "value.decided"], needs_registry=True
    ),
)
