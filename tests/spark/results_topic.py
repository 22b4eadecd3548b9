"""Everything that the job has written."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer, TopicPartition

from streamwatch.core.buckets.results import ResultRecord, result_of


async def result_records(servers: str, topic: str) -> list[ResultRecord]:
    """Everything on a results topic, in order."""
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    await consumer.start()
    try:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        end = (await consumer.end_offsets([place]))[place]
        found: list[ResultRecord] = []
        while await consumer.position(place) < end:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [result_of(record.key, record.value) for record in records]
        return found
    finally:
        await consumer.stop()
