"""What a record costs from fetched bytes to a row, and to an event, beside bare msgspec and one by one.

    python -m tests.bench.decode

All read the same values in turn, in one process; the lowest of the rounds is shown, in µs of CPU a message
and as a ratio to msgspec, which decodes the four fields into a struct and does nothing else.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence

import msgspec

from streamwatch.core.events import Partition
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import id_keys
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, gathered, piece_of

RECORDS, CALLS, ROUNDS = 500, 40, 15
AT_MS = 1_700_000_000_000
SIZES = {"thin": 80, "fat": 1_000}


class Bare(msgspec.Struct, gc=False):
    """What the bare loop reads."""

    id: str
    model: str
    prediction: str
    timestamp: int


def values(size: int) -> list[bytes]:
    """Predictions of about so many bytes, with features that nobody asks for."""
    chance = random.Random(size)
    written: list[bytes] = []
    for n in range(RECORDS):
        fields: dict[str, object] = {
            "id": f"{chance.getrandbits(64):016x}",
            "model": f"m{n % 3}",
            "prediction": chance.choice(("legit", "fraud")),
            "timestamp": AT_MS + n,
        }
        if size > 200:
            features: dict[str, object] = {f"f{i}": round(chance.gauss(0, 1), 6) for i in range(size // 25)}
            fields["features"] = features | {"comment": "x" * (size // 5)}
        written.append(json.dumps(fields, separators=(",", ":")).encode())
    return written


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


def contenders(written: Sequence[bytes]) -> dict[str, Callable[[], object]]:
    """Ways from these values to columns or objects."""
    bare = msgspec.json.Decoder(Bare).decode
    records = [KafkaRecord("p", 0, n, AT_MS + n, None, value) for n, value in enumerate(written)]
    stamps = [record.timestamp for record in records]
    fetched = gathered(Partition("p", 0), [piece_of(records)])
    texts = JsonDecoder("p", "prediction", TopicMapping())
    digests = JsonDecoder("p", "prediction", TopicMapping(), id_keys("", digest=True))
    for decoder in (texts, digests):
        for _ in range(2):
            batch = decoder.decode_batch(fetched)
        if batch.objects or batch.events() != [
            decoder.decode(*pair) for pair in zip(records, stamps, strict=True)
        ]:
            raise SystemExit("rows and events differ")
    return {
        "bare msgspec": lambda: [bare(value) for value in written],
        "rows, keys as text": lambda: texts.decode_batch(fetched),
        "rows, keys as digests": lambda: digests.decode_batch(fetched),
        "rows and events": lambda: texts.decode_batch(fetched).events(),
        "events, without rows": lambda: texts.decode_all(records, stamps),
    }


def main() -> None:
    """Print the table."""
    for size, bytes_each in SIZES.items():
        written = values(bytes_each)
        found = microseconds(contenders(written))
        sys.stdout.write(f"{size}: {sum(map(len, written)) / RECORDS:.0f} bytes\n")
        for name, cost in found.items():
            sys.stdout.write(f"  {name:24s} {cost:6.3f} µs  {cost / found['bare msgspec']:5.2f} ×\n")


if __name__ == "__main__":
    main()
