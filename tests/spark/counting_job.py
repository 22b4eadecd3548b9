"""The job over buckets that count words, as a process: `python -m tests.spark.counting_job BROKERS FOLDER`.

It reads what there is and ends, as often as it is started.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from streamwatch.assembly.spark import job_spec
from streamwatch.core.ports import Record
from streamwatch.core.records.events import Partition
from streamwatch.settings import load
from streamwatch.spark import job
from tests.spark.counting import CountingIds, CountingModels
from tests.spark.one_machine import CONFIGURATION

ID_BUCKETS, MODEL_BUCKETS = 4, 3


@dataclass(frozen=True, slots=True)
class CountingBuckets:
    """Makes buckets that count."""

    def split(self):
        return split

    def ids(self, number):
        return CountingIds(number, MODEL_BUCKETS)

    def models(self, number):
        return CountingModels(number)


def split(partition: Partition, records: Sequence[Record], host_ms: int) -> list[tuple[int, bytes]]:
    """Deal words out by their checksum."""
    del partition, host_ms
    parts: list[list[bytes]] = [[] for _ in range(ID_BUCKETS)]
    for record in records:
        for word in (record.value or b"").split():
            parts[zlib.crc32(word) % ID_BUCKETS].append(word)
    return [(bucket, b" ".join(words)) for bucket, words in enumerate(parts)]


def spec_for(brokers: str, folder: str, *overrides: str) -> job.JobSpec:
    """The job's specification."""
    settings = load(
        None,
        [
            f"kafka.bootstrap_servers={brokers}",
            "topics.predictions=words",
            "topics.labels=more-words",
            f"spark.checkpoint={folder}/checkpoint",
            f"spark.id_buckets={ID_BUCKETS}",
            f"spark.model_buckets={MODEL_BUCKETS}",
            "spark.batch_records=200",
            f"spark.configuration={json.dumps(CONFIGURATION)}",
            *overrides,
        ],
        environ={},
    )
    return job_spec(settings, CountingBuckets())


def main() -> None:
    """Read what there is."""
    brokers, folder, *overrides = sys.argv[1:]
    spec = spec_for(brokers, folder, *overrides)
    session = job.session(spec, "local[2]")
    session.sparkContext.setLogLevel("ERROR")
    query = job.start(spec, session, "available now")
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
