"""Everything that the job has written."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer, TopicPartition

from streamwatch.core.buckets.results import ResultRecord, result_of


async def result_records(servers: str, topic: str) -> list[ResultRecord]:
    """Everything on a results topic, in order."""
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        end = (await consumer.end_offsets([partition]))[partition]
        found: list[ResultRecord] = []
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [result_of(record.key, record.value) for record in records]
        return found
    finally:
        await consumer.stop()
