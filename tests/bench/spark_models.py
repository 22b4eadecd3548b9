"""The job on Spark beside the durable daemon where there are many models, on the same messages, in one run.

    .cache/spark/bin/python -m tests.bench.spark_models [--models 500] [--classes 20] [--ids 300000]

Every id is of one model, models take turns, and a label follows 30 s after its prediction, in topics of
Apache Kafka with four partitions each. Both sides are taken above their start-up: the daemon's CPU and time
count from when its partitions are assigned, and of the job, a run with next to no messages in as many batches
is taken off. CPU is counted as in `spark_job`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
import uuid

from confluent_kafka import Producer

from tests.bench.end_to_end.__main__ import in_a_fresh_process
from tests.bench.end_to_end.broker import broker
from tests.bench.spark_job import taken

PARTITIONS = 4
A_SECOND = 1_000
"""Predictions in a second of record time."""
LABEL_LATER_MS = 30_000
FEW = 40


def send(servers: str, topics: list[str], ids: int, models: int, classes: int) -> int:
    """Send predictions and labels of so many ids; how many messages that were."""
    chance = random.Random(5)
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    start_ms = round(time.time() * 1_000) - LABEL_LATER_MS - ids * 1_000 // A_SECOND - 60_000
    names = [f"class-{number:04}" for number in range(classes)]
    for number in range(ids):
        label = min(int(chance.expovariate(0.2)), classes - 1)
        predicted = label if chance.random() < 0.66 else chance.randrange(classes)
        said = {
            "id": f"id-{number:010}",
            "model": f"model-{number % models:04}",
            "prediction": names[predicted],
        }
        known = {"id": said["id"], "label": names[label]}
        at_ms = start_ms + number * 1_000 // A_SECOND
        for topic, value, ms in ((topics[0], said, at_ms), (topics[1], known, at_ms + LABEL_LATER_MS)):
            producer.produce(topic, json.dumps(value), partition=number % PARTITIONS, timestamp=ms)
        if number % 1_000 == 0:
            producer.poll(0)
            while len(producer) > 400_000:
                producer.poll(0.1)
    producer.flush()
    return 2 * ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--ids", type=int, default=300_000)
    parser.add_argument("--batches", type=int, default=10)
    arguments = parser.parse_args()
    models, classes, batches = arguments.models, arguments.classes, arguments.batches
    name = uuid.uuid4().hex[:6]
    topics = [f"models-{name}-{kind}" for kind in ("predictions", "labels", "few-predictions", "few-labels")]
    with broker(embedded=False, topics=topics, partitions=PARTITIONS) as (servers, kind):
        messages = send(servers, topics[:2], arguments.ids, models, classes)
        few = send(servers, topics[2:], FEW, 1, 2)
        print(f"{messages:,} messages, {models} models × {classes} classes, {kind}, ", end="")
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        daemon = in_a_fresh_process("durable", servers, tuple(topics[:2]), messages)
        print(f"durable daemon        {daemon['cpu']:8.1f} s of CPU, {daemon['wall']:.1f} s", flush=True)
        start = taken(servers, topics[2:], few, batches)
        print(f"job, next to nothing  {start}", flush=True)
        whole = taken(servers, topics[:2], messages, batches)
        print(f"job                   {whole}; checkpoint {whole.bytes / 1e6:.1f} MB", flush=True)
        cpu, java = whole.run.cpu - start.run.cpu, whole.run.java - start.run.java
        wall = whole.run.wall - start.run.wall
        print(f"job above its start   {cpu:8.1f} s of CPU, {java:.1f} of them in Java, {wall:.1f} s")
        ratios = cpu / daemon["cpu"], wall / daemon["wall"]
        print(f"beside the daemon     {ratios[0]:8.2f} times its CPU, {ratios[1]:.2f} times its time")


if __name__ == "__main__":
    main()
