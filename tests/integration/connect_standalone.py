"""Kafka Connect, one worker in a child process, which writes topics to files line by line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.integration.kafka_broker import BRIEF, HERE, connect_jars
from tests.ports import free_port

WORKER = """\
bootstrap.servers={servers}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=200
listeners=http://127.0.0.1:{port}
consumer.isolation.level=read_committed
consumer.auto.offset.reset=earliest
consumer.metadata.max.age.ms=1000
"""
SINK = """\
name={name}
connector.class=org.apache.kafka.connect.file.FileStreamSinkConnector
tasks.max=1
topics={topic}
file={file}
"""


@contextmanager
def connect(servers: str, folder: Path, files: Mapping[str, Path]) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that writes each of these topics to its file; killed at the end."""
    worker = folder / "worker.properties"
    worker.write_text(WORKER.format(servers=servers, folder=folder, port=free_port()))
    sinks: list[str] = []
    for number, (topic, file) in enumerate(files.items()):
        sink = folder / f"sink-{number}.properties"
        sink.write_text(SINK.format(name=f"sink-{number}", topic=topic, file=file))
        sinks.append(str(sink))
    options = [*BRIEF, "-Xmx256m", f"-Dlog4j2.configurationFile={HERE}/log4j2.properties"]
    standalone = "org.apache.kafka.connect.cli.ConnectStandalone"
    command = ["java", "-cp", f"{connect_jars()}/*", *options, standalone]
    with (
        (folder / "connect.log").open("wb") as out,
        subprocess.Popen([*command, str(worker), *sinks], stdout=out, stderr=out) as process,
    ):
        try:
            yield process
        finally:
            process.kill()
