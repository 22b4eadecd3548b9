"""Read and decode, and nothing else: what no monitor can do without."""

from __future__ import annotations

import asyncio
import time

from aiokafka import AIOKafkaConsumer, TopicPartition

from streamwatch.edge.sources.kafka.spec import KafkaSpec
from tests.bench.peers.payloads import payload_of

POLL_RECORDS = 2_000
"""With which the loop is fastest: of 500, 2,000, 8,000 and all there are."""


async def bare(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """Read and decode every message; nothing else."""
    spec = KafkaSpec(bootstrap_servers=servers)
    payload = payload_of()
    decoding = payload.decode_predictions(), payload.decode_labels()
    decoders = dict(zip(topics, decoding, strict=True))
    async with AIOKafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="none",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_partition_fetch_bytes=spec.max_partition_fetch_bytes,
        request_timeout_ms=spec.request_timeout_ms,
    ) as consumer:
        cluster = await consumer._client.fetch_all_metadata()
        places = [TopicPartition(t, p) for t in topics for p in cluster.partitions_for_topic(t)]
        consumer.assign(places)
        await consumer.seek_to_beginning()
        seen = 0
        began, wall = time.process_time(), time.monotonic()
        while seen < messages:
            found = await consumer.getmany(timeout_ms=spec.poll_timeout_ms, max_records=POLL_RECORDS)
            for place, records in found.items():
                decode = decoders[place.topic]
                for record in records:
                    decode(record.value)
                seen += len(records)
            await asyncio.sleep(0)
        return {"cpu": time.process_time() - began, "wall": time.monotonic() - wall}
