"""`streamwatch run` as a process: signals under load, exit codes, what it writes when it refuses."""

from __future__ import annotations

import json
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.edge.sources.kafka.batches.raw_batches import ZSTD, of
from tests.integration.conftest import Broker
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.raw_produce import produce
from tests.integration.running import DEADLINE_SECONDS, Child, child, parsed, value
from tests.integration.topics import create_topic, fresh

BACKLOG = 150_000
STOP_SECONDS = 10.0
"""Of its own: those in which it had no processor do not count."""


async def backlog(broker: Broker, count: int) -> list[str]:
    """Overrides for a child whose topics hold a backlog of `count` predictions and as many labels."""
    topics = [await create_topic(broker, fresh(side), 2) for side in ("predictions", "labels")]
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 1_000_000}
    )
    for number in range(count):
        producer.produce(topics[0], json.dumps({"id": str(number), "model": "m", "prediction": "a"}))
        producer.produce(topics[1], json.dumps({"id": str(number), "label": "a" if number % 3 else "b"}))
    assert producer.flush(600) == 0
    return [
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        f"topics.predictions={topics[0]}",
        f"topics.labels={topics[1]}",
    ]


def wait_for_load(running: Child) -> float:
    """Until it has read something; the number of predictions."""
    url, deadline = running.url(), time.monotonic() + DEADLINE_SECONDS
    while True:
        assert time.monotonic() < deadline, running.log
        running.pause()
        with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310
            read = value(parsed(answer.read().decode()), "predictions_accepted_total")
        if read > 0:
            return read


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_under_load_ends_it_within_ten_seconds_and_with_exit_code_0(
    broker: Broker, tmp_path: Path, number: signal.Signals
) -> None:
    overrides = await backlog(broker, BACKLOG)
    with child(tmp_path, *overrides, anew=True) as running:
        read = wait_for_load(running)
        code, seconds = running.end(number)
    assert code == 0, running.log
    assert seconds < STOP_SECONDS
    lines = [json.loads(line) for line in running.log.splitlines()]
    assert [line["event"] for line in lines[-2:]] == ["stopping", "stopped"]
    assert lines[-2]["signal"] == number.name
    assert lines[-1]["records"] >= read


async def test_a_signal_ends_it_while_the_broker_is_gone(killable_kafka: KafkaBroker, tmp_path: Path) -> None:
    overrides = await backlog(killable_kafka, 1_000)
    with child(tmp_path, *overrides, anew=True) as running:
        wait_for_load(running)
        killable_kafka.kill()
        try:
            code, seconds = running.end(signal.SIGTERM)
        finally:
            killable_kafka.start()
    assert code == 0, running.log
    assert seconds < STOP_SECONDS


@pytest.mark.parametrize("anew", [True, False], ids=["started anew", "forked"])
def test_it_serves_and_can_be_stopped_while_kafka_was_never_there(tmp_path: Path, *, anew: bool) -> None:
    (tmp_path / "daemon.log").write_text("http://127.0.0.1:1 was the one before\n")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        overrides = (f"kafka.bootstrap_servers={address}", "topics.predictions=p", "topics.labels=l")
        with child(tmp_path, *overrides, anew=anew) as running:
            url = running.url()
            with urllib.request.urlopen(f"{url}/healthz") as answer:  # noqa: S310
                assert answer.status == 200
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{url}/readyz")  # noqa: S310
            assert refused.value.code == 503
            code, seconds = running.end(signal.SIGTERM)
    assert code == 0, running.log
    assert seconds < STOP_SECONDS
    events = [json.loads(line)["event"] for line in running.log.splitlines()]
    assert (events[0], events[-2:]) == ("started", ["stopping", "stopped"])


async def test_a_misspelt_topic_is_refused_with_the_nearest_name_and_exit_code_2(
    broker: Broker, tmp_path: Path
) -> None:
    topic = await create_topic(broker, fresh("predictions"))
    typo = topic.replace("predictions", "predictoins")
    overrides = (
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        f"topics.predictions={typo}",
        f"topics.labels={topic}",
    )
    with child(tmp_path, *overrides, anew=True) as running:
        assert running.process.wait(DEADLINE_SECONDS) == 2
    assert f"topic {typo!r} does not exist (did you mean {topic}" in running.log
    assert "Traceback" not in running.log


def refusal(running: Child) -> str:
    """The one line beside the log with which it ended, with the exit code that supervisors do not retry."""
    assert running.process.wait(DEADLINE_SECONDS) == 2, running.log
    assert "Traceback" not in running.log
    [line] = [line for line in running.log.splitlines() if not line.startswith("{")]
    return line


async def test_a_codec_without_its_package_ends_it_with_what_to_install(
    kafka: Broker, tmp_path: Path
) -> None:
    topics = [await create_topic(kafka, fresh(side)) for side in ("predictions", "labels")]
    await produce(kafka.bootstrap_servers, topics[0], {0: [of([b"{}"], codec=ZSTD).bytes()]})
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "cramjam.py").write_text("raise ModuleNotFoundError('cramjam')\n")
    overrides = (
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={topics[0]}",
        f"topics.labels={topics[1]}",
    )
    with child(tmp_path, *overrides, environment={"PYTHONPATH": str(absent)}) as running:
        assert refusal(running) == (
            "records are compressed with zstd, for which a package is missing:"
            " install it with pip install 'streamwatchd[compression]'"
        )


async def test_a_wrong_password_ends_it_with_the_settings_to_look_at(
    killable_kafka: KafkaBroker, tmp_path: Path
) -> None:
    topics = [await create_topic(killable_kafka, fresh(side)) for side in ("predictions", "labels")]
    password = tmp_path / "password"
    password.write_text("not-it\n")
    overrides = (
        f"kafka.bootstrap_servers={killable_kafka.sasl_servers}",
        f"kafka.security={{protocol: SASL_PLAINTEXT, username: reader, password_file: {password}}}",
        f"topics.predictions={topics[0]}",
        f"topics.labels={topics[1]}",
    )
    with child(tmp_path, *overrides, anew=True) as running:
        said = refusal(running)
    assert said.startswith(f"Kafka at {killable_kafka.sasl_servers} does not let this client in: check ")
    assert "kafka.security.username" in said
    assert "not-it" not in running.log


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("http.listen=192.0.2.1:80", "cannot serve HTTP on 192.0.2.1:80"),
        ("join.horizon=soon", "join.horizon in --set: expected a duration"),
        ("monitors.per_class=fading:0.5", "monitors.per_class: expected one of landmark, fading:0.999"),
    ],
)
def test_what_must_be_changed_first_ends_it_with_exit_code_2_and_no_traceback(
    tmp_path: Path, override: str, message: str
) -> None:
    overrides = ("kafka.bootstrap_servers=127.0.0.1:1", "topics.predictions=p", "topics.labels=l", override)
    with child(tmp_path, *overrides, anew=True) as running:
        assert running.process.wait(DEADLINE_SECONDS) == 2
    assert message in running.log
    assert "Traceback" not in running.log
