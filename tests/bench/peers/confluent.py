"""The bare loop over confluent-kafka: consume and decode, nothing else.

python -m tests.bench.peers.confluent SERVERS PREDICTIONS,LABELS MESSAGES
"""

from __future__ import annotations

import json
import sys
import time

import msgspec
from confluent_kafka import Consumer, TopicPartition

from tests.bench.peers.payloads import Label, Prediction

AT_ONCE = 2_000


def read(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """Read and decode every message, with the library's own settings."""
    kinds = (Prediction, Label)
    decoders = {t: msgspec.json.Decoder(kind).decode for t, kind in zip(topics, kinds, strict=True)}
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False})
    known = consumer.list_topics(timeout=10).topics
    consumer.assign([TopicPartition(t, p, 0) for t in topics for p in known[t].partitions])
    began, wall, seen = time.process_time(), time.monotonic(), 0
    while seen < messages:
        for message in consumer.consume(AT_ONCE, 0.5):
            if message.error():
                raise RuntimeError(str(message.error()))
            decoders[message.topic()](message.value())
            seen += 1
    found = {"cpu": time.process_time() - began, "wall": time.monotonic() - wall}
    consumer.close()
    return found


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]))))
