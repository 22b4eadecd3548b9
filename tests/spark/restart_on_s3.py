"""The job on a checkpoint in S3, killed and started again; run by hand:

    python -m tests.spark.restart_on_s3 --server moto_server --classes FOLDER [--kills 3]

The server is moto's (`pip install "moto[s3,server]"`), which speaks S3 on the loopback; in the folder are the
jars of `org.apache.hadoop:hadoop-aws`, as `mvn dependency:copy-dependencies` leaves them. A first job keeps
its checkpoint in a folder, a second in S3, and nobody kills them. A third keeps it in S3 and is killed so
often, all its processes at once, with SIGKILL: when the results of a batch are with the broker and Spark does
not know yet; when they are in an open transaction; some moment after a batch is done. All read the same
log from Apache Kafka. What a daemon says of the third's results topic must be what others say of the
second's, and of the log itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from streamwatch.core.buckets.results import MARK, ResultRecord
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.topics import create_topic, fresh
from tests.ports import free_port
from tests.spark.aimed_kills import HOLDS
from tests.spark.comparing import reported_by
from tests.spark.five_models import events_of, write
from tests.spark.one_machine import CONFIGURATION, killed, until
from tests.spark.results_topic import result_records

LOGGER = logging.getLogger("restart_on_s3")
BUCKET: Final = "checkpoints"
PREFIX: Final = "streamwatch"
PARTITIONS: Final = 4
MOMENTS: Final = ("written", "sent", "committed")
"""Of kills, in turns (`aimed_kills`)."""
COMPARED: Final = ("counters", "models", "compared", "alarms")
_BATCH_DONE: Final = re.compile(rf"<Key>{PREFIX}/commits/(\d+)</Key>")
_OBJECT: Final = re.compile(r"<Key>[^<]+</Key>.*?<Size>(\d+)</Size>", re.DOTALL)
_REQUEST: Final = re.compile(r'"(?:\x1b\[\d+m)*(GET|PUT|POST|HEAD|DELETE) ')


class Store:
    """A server of S3 with one bucket, on the loopback.

    Parameters
    ----------
    program
        Moto's server.
    log
        File of its requests.
    """

    def __init__(self, program: str, log: Path) -> None:
        self._port = free_port()
        self._log = log
        self._program = program
        self.url = f"http://127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Generator[None]:
        """Serve, with an empty bucket."""
        command = [self._program, "-H", "127.0.0.1", "-p", str(self._port)]
        with self._log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
            try:
                self._make_bucket(server)
                yield
            finally:
                server.terminate()

    def batches_done(self) -> int:
        """Batches that Spark counts as done."""
        return len(_BATCH_DONE.findall(self._list(f"{PREFIX}/commits/")))

    def sizes(self) -> list[int]:
        """Sizes of the first thousand objects of the checkpoint."""
        return [int(size) for size in _OBJECT.findall(self._list(PREFIX))]

    def requests(self) -> Counter[str]:
        """Requests so far, by method."""
        return Counter(_REQUEST.findall(self._log.read_text(encoding="utf-8", errors="replace")))

    def _make_bucket(self, server: subprocess.Popen[bytes]) -> None:
        while True:
            if server.poll() is not None:
                raise SystemExit(f"{self._program} ended: {self._log.read_text()[-1_000:]}")
            with suppress(ConnectionError):
                self._asked("PUT", f"/{BUCKET}")
                return
            time.sleep(0.1)

    def _list(self, prefix: str) -> str:
        return self._asked("GET", f"/{BUCKET}?list-type=2&max-keys=1000&prefix={prefix}")

    def _asked(self, method: str, path: str) -> str:
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            connection.request(method, path)
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status != HTTPStatus.OK:
                raise SystemExit(f"{method} {path}: {answer.status}: {text}")
            return text


def in_store(store: Store, classes: Path) -> dict[str, str]:
    """Configuration of Spark for a checkpoint in S3."""
    return CONFIGURATION | {
        "spark.driver.extraClassPath": f"{classes}/*",
        "spark.hadoop.fs.s3a.endpoint": store.url,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def written_twice(records: Sequence[ResultRecord]) -> int:
    """How many batches were written twice; these must say the same twice."""
    bodies: dict[tuple[int, str, str], bytes] = {}
    for each in records:
        if (
            each.kind != MARK
            and bodies.setdefault((each.batch, each.kind, each.name), each.body) != each.body
        ):
            raise SystemExit(f"batch {each.batch} says two things of {each.kind} {each.name}")
    marks = [each.batch for each in records if each.kind == MARK]
    return len(marks) - len(set(marks))


def run_through_kills(
    command: Sequence[str], folder: Path, kills: int, store: Store, chance: random.Random
) -> int:
    """Start a job until it ends by itself, killed so often before; its exit code."""
    hold, held, code = folder / "hold", folder / "held", -1
    for number in range(kills + 1):
        with (
            (folder / "job.log").open("ab") as out,
            subprocess.Popen(command, stdout=out, stderr=out) as started,
        ):
            if number < kills:
                moment = MOMENTS[number % len(MOMENTS)]
                if moment in HOLDS:
                    hold.write_text(moment)
                    until(started, held.exists)
                else:
                    wanted = store.batches_done() + 1
                    until(started, lambda: store.batches_done() >= wanted, 1.0)  # noqa: B023  # asked at once
                    time.sleep(chance.uniform(0, 3))
                if started.poll() is not None:
                    raise SystemExit("the job was done before it was killed: write more batches")
                killed(started)
                hold.unlink(missing_ok=True)
                held.unlink(missing_ok=True)
                LOGGER.info("killed: %s, %d batches done", moment, store.batches_done())
        code = started.returncode
    return code


def job(folder: Path, *settings: str) -> list[str]:
    """Command of a job that reads what there is."""
    folder.mkdir()
    return [sys.executable, "-m", "tests.spark.held_job", str(folder), "local[2]", "available now", *settings]


def timed(command: Sequence[str], log: Path) -> float:
    """Run a job to its end; seconds."""
    began = time.monotonic()
    with log.open("ab") as out:
        done = subprocess.run(command, stdout=out, stderr=out, check=False)
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {log.read_text()[-3_000:]}")
    return time.monotonic() - began


async def compare(work: Path, server: str, classes: Path, kills: int, steps: int, batches: int) -> None:
    """Run both jobs, and exit with a message where they differ."""
    kafka = KafkaBroker(work / "kafka")
    store = Store(server, work / "requests.log")
    kafka.start()
    try:
        with store.running():
            topics = {
                side: await create_topic(kafka, fresh(side), PARTITIONS, retention_ms="-1")
                for side in ("predictions", "labels")
            }
            chance = random.Random(16)
            events = events_of(chance, int(time.time() * 1_000) - 200_000, range(steps))
            write(kafka, topics, PARTITIONS, events, chance)
            common = [
                f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
                f"topics.predictions={topics['predictions']}",
                f"topics.labels={topics['labels']}",
                "join.horizon=20s",
                "join.early_horizon=2s",
            ]
            spark = [
                *common,
                "spark.id_buckets=4",
                "spark.model_buckets=3",
                f"spark.batch_records={len(events) // batches}",
            ]

            def settings(name: str, configuration: dict[str, str]) -> list[str]:
                return [
                    *spark,
                    f"spark.results_topic={name}",
                    f"spark.configuration={json.dumps(configuration)}",
                ]

            def on_s3(prefix: str) -> list[str]:
                return [
                    *settings(f"results-{prefix}", in_store(store, classes)),
                    f"spark.checkpoint=s3a://{BUCKET}/{prefix}",
                ]

            alone = settings("results-alone", CONFIGURATION)
            seconds = await asyncio.to_thread(timed, job(work / "alone", *alone), work / "alone.log")
            LOGGER.info("%d records; checkpoint in a folder, left alone: %.0f s", len(events), seconds)
            kept_job = on_s3("kept")
            seconds = await asyncio.to_thread(timed, job(work / "kept", *kept_job), work / "kept.log")
            before = store.requests()
            LOGGER.info("checkpoint in S3, left alone: %.0f s, requests %s", seconds, dict(before))
            killed_job = on_s3(PREFIX)
            began = time.monotonic()
            folder = work / "killed"
            code = await asyncio.to_thread(
                run_through_kills, job(folder, *killed_job), folder, kills, store, chance
            )
            if code:
                raise SystemExit(f"exit code {code}: {(folder / 'job.log').read_text()[-3_000:]}")
            seconds = time.monotonic() - began
            sizes, done = store.sizes(), store.batches_done()
            found = await result_records(kafka.bootstrap_servers, f"results-{PREFIX}")
            LOGGER.info("checkpoint in S3, %d kills: %.0f s, %d batches done", kills, seconds, done)
            LOGGER.info(
                "%d objects, %.1f MB; %d batches twice", len(sizes), sum(sizes) / 1e6, written_twice(found)
            )
            by_log, by_kept, by_killed = await asyncio.gather(
                reported_by(work / "of-log", len(events), *common),
                reported_by(work / "of-kept", len(events), *kept_job, "source=results"),
                reported_by(work / "of-killed", len(events), *killed_job, "source=results"),
            )
            for name in COMPARED:
                if not by_log[name] == by_kept[name] == by_killed[name]:
                    raise SystemExit(f"daemons differ in {name}")
            if not by_log["alarms"]:
                raise SystemExit("no alarm: write more steps")
            counted = {name: len(by_log[name]) for name in COMPARED}
            LOGGER.info("three daemons say the same: %s", counted)
    finally:
        kafka.kill()


def main() -> None:
    """Compare; the exit code is 0 if everything is the same."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.spark.restart_on_s3",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--server", required=True, help="moto_server")
    parser.add_argument("--classes", required=True, type=Path, help="folder of jars")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200, help="of the log, each a prediction by five models")
    parser.add_argument("--batches", type=int, default=6)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as work:
        classes = asked.classes.resolve()
        asyncio.run(
            compare(Path(work), asked.server, classes, asked.kills, asked.steps, asked.batches),
        )


if __name__ == "__main__":
    main()
