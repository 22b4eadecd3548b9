"""Mutated records in every envelope, through every kind of mapping: none raises or costs much.

python -m tests.attack.envelopes --records 1000000
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from streamwatch.core.records.events import EventGroup, Invalid
from streamwatch.edge.decoders.envelopes import KINDS
from streamwatch.edge.decoders.formats.json import read_json
from streamwatch.edge.decoders.mapping import (
    REASONS,
    ClassOfLargest,
    ClassOfScore,
    KindRule,
    ScoreArray,
    SidedMapping,
    TopicMapping,
)
from streamwatch.edge.decoders.trees import TreeDecoder
from tests.edge.decoders.mutations import SCALARS, damage
from tests.edge.decoders.records import AT_MS, FakeRecord

SLOW_SECONDS = 1.0
"""Processor time that no record may take."""
MEMORY_BYTES = 300_000_000
"""Resident memory that all of it may add."""
DEEP = "[" * 900 + "]" * 900
HUGE = (
    DEEP,
    '{"a":' * 300 + "1" + "}" * 300,
    '"' + "x" * 50_000 + '"',
    "[" + "1," * 20_000 + "1]",
    "[[1],[2]]",
)
SHAPES = (
    "[2,1]",
    "[1]",
    "[0]",
    "[-1]",
    "[2]",
    "[2,2]",
    "[1e999]",
    f"[{','.join(['9' * 18] * 200)}]",
    "[true]",
    "null",
)
SEEDS: dict[str, dict[str, Any]] = {
    "cloudevents": {
        "specversion": "1.0",
        "id": "e",
        "source": "s",
        "type": "t",
        "data": {"id": 1, "prediction": "x"},
    },
    "debezium": {
        "payload": {"op": "c", "before": {"id": 1}, "after": {"id": 1, "prediction": "x"}},
        "schema": {},
    },
    "kserve_v1": {"id": "r", "model_name": "m", "instances": [1], "predictions": [1, {"a": 0.5}, [0.1, 0.9]]},
    "kserve_v2": {"id": "r", "model_name": "m", "outputs": [{"name": "o", "shape": [2, 1], "data": [0, 1]}]},
    "seldon": {"meta": {"puid": "p"}, "data": {"names": ["a", "b"], "ndarray": [[0.1, 0.9], [1, 0]]}},
}
LOGGED = ("request", "response", "data", "payload", "value")


@dataclass
class Tally:
    """What was tried."""

    records: int = 0
    events: Counter[str] = field(default_factory=Counter[str])
    """By kind, the reason of those that are invalid."""
    slowest_seconds: float = 0.0
    extra_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def _mappings(side: str) -> list[SidedMapping]:
    plain = TopicMapping(model="value.model", label="value.outputs.o[]", prediction="value.predictions[]")
    several = (
        plain,
        TopicMapping(id="value.data.id", model="value.type", prediction="value.data.prediction", label="=x"),
        TopicMapping(model="=m", label="value.prediction"),
        TopicMapping(model="value.model", prediction=ClassOfLargest("value.columns[]"), scores=None),
        TopicMapping(model="=m", prediction="value.output[]", segments={"s": "value.event.type"}),
        TopicMapping(model=None, prediction=ClassOfScore("value.data.p[0]", 1, "a", "b"), optional=True),
        TopicMapping(
            model="value.event.id",
            prediction=ClassOfLargest("value.rows[]", ("a", "b")),
            scores=ScoreArray("value.rows[]", ("a", "b")),
            kind=KindRule("value.event.type"),
        ),
        TopicMapping(id="key.id", prediction="value.prediction", label="value.label"),
    )
    return [SidedMapping("label" if side == "label" else "prediction", each) for each in several]


def decoders() -> list[tuple[str, TreeDecoder]]:
    """Every envelope with predictions, with labels, and with several mappings at once."""
    found: list[tuple[str, TreeDecoder]] = []
    for name, kind in KINDS.items():
        for side in ("prediction", "label"):
            mappings = _mappings(side)
            found += [(name, TreeDecoder("predictions", [each], read_json, kind)) for each in mappings]
        found.append(
            (
                name,
                TreeDecoder("predictions", [*_mappings("prediction"), *_mappings("label")], read_json, kind),
            )
        )
    return found


def mutated(chance: random.Random, name: str) -> FakeRecord:
    """A record in an envelope, or nearly."""
    content: Any = json.loads(json.dumps(SEEDS[name]))
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        _change(chance, content)
    if chance.random() < 0.15:
        content = {chance.choice(LOGGED): content, "id": "q"}
    text = json.dumps(content)
    if chance.random() < 0.1:
        content = {**SEEDS["cloudevents"], "data_base64": base64.b64encode(text.encode()).decode()}
        text = json.dumps(content)
    for mark, choices in (('"@odd"', SCALARS), ('"@huge"', HUGE), ('"@shape"', SHAPES)):
        while mark in text:
            text = text.replace(mark, chance.choice(choices), 1)
    value = bytearray(text.encode("utf-8", "surrogatepass"))
    if chance.random() < 0.2:
        damage(chance, value)
    headers = (
        ("ce_specversion", b"1.0"),
        ("ce_id", chance.choice((b"\xff", b"e"))),
        ("ce_source", b"s"),
        ("ce_type", b"t"),
    )
    key = chance.choice((None, b"k", b'{"id": 5}', b'{"id": ' + DEEP.encode() + b"}", b"\xff"))
    return FakeRecord(bytes(value), key, headers if chance.random() < 0.1 else ())


def _change(chance: random.Random, content: Any) -> None:
    """Put something else in one place of a tree."""
    while isinstance(content, dict | list) and content:
        place: Any = (
            chance.choice(list(content)) if isinstance(content, dict) else chance.randrange(len(content))
        )
        inner = content[place]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.3:
            mark = "@shape" if place == "shape" else "@huge" if chance.random() < 0.03 else "@odd"
            content[place] = mark if chance.random() < 0.8 else [mark] * chance.choice((0, 1, 3))
            return
        content = inner


def attack(records: int, seed: int) -> Tally:
    """Decode so many mutated records, each by one of the decoders; what breaks a promise is a fault."""
    chance, tally = random.Random(seed), Tally()
    several = decoders()
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(records):
        name, decoder = several[number % len(several)]
        record = mutated(chance, name if chance.random() < 0.9 else chance.choice(list(SEEDS)))
        began = time.thread_time()
        try:
            found = decoder.decode(record, AT_MS)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            tally.faults.append(f"{name}: {error!r} on {(record.value or b'')[:300]!r}")
            continue
        finally:
            seconds = time.thread_time() - began
            tally.slowest_seconds = max(tally.slowest_seconds, seconds)
            tally.records += 1
        if seconds > SLOW_SECONDS:
            tally.faults.append(f"{name}: {seconds:.1f} s on {(record.value or b'')[:300]!r}")
        for event in found.events if isinstance(found, EventGroup) else (found,):
            told = event.reason if isinstance(event, Invalid) else type(event).__name__
            tally.events[told] += 1
            if isinstance(event, Invalid) and told not in REASONS:
                tally.faults.append(f"{name}: unknown reason {told}")
    tally.extra_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun) * 1024
    if tally.extra_bytes > MEMORY_BYTES:
        tally.faults.append(f"{tally.extra_bytes} bytes more are resident")
    return tally


def told(tally: Tally) -> str:
    """What was tried, in a line."""
    valid = sum(count for kind, count in tally.events.items() if kind not in REASONS)
    return (
        f"{tally.records:,} mutated records in {len(SEEDS)} envelopes: {valid:,} events,"
        f" {tally.events.total() - valid:,} invalid for {len(tally.events.keys() & REASONS.keys())} reasons,"
        f" slowest {1_000 * tally.slowest_seconds:.0f} ms, {tally.extra_bytes / 1e6:.0f} MB more,"
        f" {len(tally.faults)} faults"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    tally = attack(asked.records, asked.seed)
    print(told(tally), f"({time.monotonic() - began:.0f} s)")  # noqa: T201
    for fault in tally.faults[:20]:
        print(fault)  # noqa: T201
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
