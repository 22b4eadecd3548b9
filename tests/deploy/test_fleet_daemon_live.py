"""Twenty minutes of a daemon that watches 500 models on Kafka, with the shipped rules and policy behind it.

    STREAMWATCH_TESTS=all python -m pytest -s tests/deploy/test_fleet_daemon_live.py

Everything is real but the models: Apache Kafka, `streamwatch run` with its state on disk, Prometheus with the
shipped rules, and Alertmanager with the shipped routes and inhibitions. The waits of the rules, and the
silences that they call too long, pass thirty times as fast. A table shows what people should be
notified of, what they were notified of, and after how long; `STREAMWATCH_TABLE` names a file for it as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from confluent_kafka import Producer

from tests.deploy.rules import DEPLOY, RULE_FILES
from tests.deploy.served_receiver import served
from tests.integration.alertmanager_server import alertmanager
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.prometheus_server import prometheus
from tests.integration.running import Child, child
from tests.integration.topics import create_topic, fresh
from tests.integration.watched import page
from tests.ports import free_port

pytestmark = pytest.mark.long

MODELS = 500
OF_THE_SILENT_TOPIC = 100
"""The last of them, whose labels come on a topic of their own."""
DRIFTING = 10
FASTER = 30
"""How much faster time passes in the rules."""
USUAL_ERROR, DRIFTED_ERROR = 0.1, 0.6
"""As large that models that drift go on to be better than the majority class."""
CALM_SECONDS = 240.0
DEADLINE_SECONDS = 300.0
SCRAPE_SECONDS = 5
QUIET_SECONDS = 30.0
"""After the end of something, in which more may come."""

Alert = tuple[str, str]
"""Name of an alert, and the model or topic that it is about, or an empty text."""


def model(number: int) -> str:
    return f"fraud-{number:03d}"


class Fleet:
    """Predictions of every model each second, and their labels a second or so later."""

    def __init__(self, servers: str, topics: dict[str, str]) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
        self._topics = topics
        self._chance = random.Random(36)
        self._stop = asyncio.Event()
        self.paused = self.labels_silent = False
        self.drifting = 0

    async def write(self) -> None:
        began, tick = time.monotonic(), 0
        waiting: list[tuple[str, str, str]] = []
        while not self._stop.is_set():
            await asyncio.sleep(max(0.0, began + tick - time.monotonic()))
            tick += 1
            if self.paused:
                waiting.clear()
                continue
            for side, name, truth in waiting:
                if not (side == "silent" and self.labels_silent):
                    self._send(f"labels-{side}", {"id": name, "label": truth})
            waiting = []
            for number in range(MODELS):
                truth, name = self._chance.choice("abc"), f"{number}-{tick}"
                error = DRIFTED_ERROR if number < self.drifting else USUAL_ERROR
                others = "abc".replace(truth, "")
                guess = self._chance.choice(others) if self._chance.random() < error else truth
                side = "silent" if number >= MODELS - OF_THE_SILENT_TOPIC else "steady"
                self._send(f"predictions-{side}", {"id": name, "model": model(number), "prediction": guess})
                waiting.append((side, name, truth))
                if number % 100 == 0:
                    self._producer.poll(0)
                    await asyncio.sleep(0)
        assert await asyncio.to_thread(self._producer.flush, 60) == 0

    def stop(self) -> None:
        self._stop.set()

    def _send(self, side: str, document: dict[str, str]) -> None:
        self._producer.produce(self._topics[side], json.dumps(document))


@dataclass
class Notified:
    """One notification: when it came, to which receiver, and the alerts in it that fire and that are over."""

    seconds: float
    receiver: str
    firing: set[Alert]
    resolved: set[Alert]


@dataclass
class People:
    """The receivers of Alertmanager's notifications."""

    notified: list[Notified] = field(default_factory=list[Notified])

    async def listen(self, request: web.Request) -> web.Response:
        reported: dict[str, set[Alert]] = {"firing": set(), "resolved": set()}
        for alert in (await request.json())["alerts"]:
            labels = alert["labels"]
            about = labels.get("model") or labels.get("label_topic") or labels.get("topic") or ""
            reported[alert["status"]].add((labels["alertname"], about))
        receiver = request.match_info["receiver"]
        self.notified.append(Notified(time.monotonic(), receiver, reported["firing"], reported["resolved"]))
        return web.Response(text="ok")

    async def once(self, alerts: Collection[Alert], reported: str, since: float) -> float | None:
        """Wait until they were notified of all of these; seconds until then, None where that never was."""
        while alerts and time.monotonic() < since + DEADLINE_SECONDS:
            known: set[Alert] = set()
            for each in self.notified:
                if each.seconds >= since:
                    known |= getattr(each, reported)
                    if known >= set(alerts):
                        return each.seconds - since
            await asyncio.sleep(0.2)
        return None if alerts else 0.0


@dataclass
class Story:
    """One row of the table."""

    name: str
    expected: set[Alert]
    fired: float | None = None
    resolved: float | None = None
    reported: set[Alert] = field(default_factory=set[Alert])
    notifications: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def others(self) -> set[Alert]:
        """Alerts beside those expected; a model's own, of a model that is expected, are not counted."""
        models = {about for _, about in self.expected if about.startswith("fraud-")}
        return {each for each in self.reported - self.expected if each[1] not in models}

    def row(self) -> str:
        def seconds(value: float | None) -> str:
            return "never" if value is None else f"{value:.0f} s"

        times = ["–", "–"] if not self.expected else [seconds(self.fired), seconds(self.resolved)]
        receivers = ", ".join(f"{count} {name}" for name, count in sorted(self.notifications.items()))
        cells = [self.name, _named(self.expected), _named(self.reported), receivers or "none", *times]
        return f"| {' | '.join(cells)} |"


def _named(alerts: set[Alert]) -> str:
    names = sorted({name for name, _ in alerts})
    counts = [(name, sum(each == name for each, _ in alerts)) for name in names]
    return ", ".join(f"{name} × {count}" if count > 1 else name for name, count in counts) or "none"


HEAD = """\
| what happens | expected | reported | notifications, by receiver | reported after | over after |
|---|---|---|---|---|---|"""


def faster_rules(directory: Path) -> list[Path]:
    """The shipped rules, with waits and the silences called too long divided by `FASTER`."""

    def seconds(found: re.Match[str]) -> str:
        of_unit = {"s": 1, "m": 60, "h": 3_600}
        return f"{found[1]}{max(1, int(found[2]) * of_unit[found[3]] // FASTER)}s"

    files: list[Path] = []
    for file in RULE_FILES:
        text = file.read_text(encoding="utf-8")
        text = re.sub(r"(?m)^( +(?:keep_firing_)?for: )(\d+)([smh])$", seconds, text)
        text, silences = re.subn(r"\b(1800|2700|3600)\)", lambda found: f"{int(found[1]) // FASTER})", text)
        assert silences >= 1
        files.append(directory / file.name)
        files[-1].write_text(text, encoding="utf-8")
    return files


class Daemon:
    """`streamwatch run`, which answers at the same address after each start."""

    def __init__(self, folder: Path, *overrides: str) -> None:
        self._folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self._overrides = [*overrides, f"http.listen={self.address}"]
        self._stack = ExitStack()
        self._child: Child | None = None

    def start(self) -> None:
        self._child = self._stack.enter_context(child(self._folder, *self._overrides))
        self._child.url()

    def stop(self) -> None:
        if self._child is not None:
            code, _ = self._child.end(signal.SIGTERM)
            log, self._child = self._child.log, None
            self._stack.close()
            assert code == 0, log[-3_000:]


@dataclass
class Stories:
    """What happens, one after the other, and what people are notified of."""

    people: People
    reported: list[Story] = field(default_factory=list[Story])

    async def calm(self, name: str, seconds: float) -> None:
        """Let nothing happen for so long."""
        await self.tell(name, set(), lambda: None, lambda: None, seconds)

    async def tell(
        self,
        name: str,
        expected: set[Alert],
        begin: Callable[[], None],
        end: Callable[[], None],
        stays: float,
    ) -> None:
        """Let something begin, wait until people know, and as long as it `stays`; then let it end."""
        self.reported.append(story := Story(name, expected))
        first = len(self.people.notified)
        began = time.monotonic()
        await asyncio.to_thread(begin)
        story.fired = await self.people.once(expected, "firing", began)
        await asyncio.sleep(stays)
        ended = time.monotonic()
        await asyncio.to_thread(end)
        story.resolved = await self.people.once(expected, "resolved", ended)
        await asyncio.sleep(QUIET_SECONDS)
        for each in self.people.notified[first:]:
            story.reported |= each.firing
            story.notifications[each.receiver] = story.notifications.get(each.receiver, 0) + 1
        print(story.row(), flush=True)  # noqa: T201

    def table(self) -> str:
        """In Markdown."""
        return "\n".join([HEAD, *(story.row() for story in self.reported), ""])


async def everything_that_happens(
    stories: Stories, fleet: Fleet, kafka: KafkaBroker, daemon: Daemon, silent: str
) -> None:
    """Calm, drifts, a silent topic, a lost broker and a stopped daemon."""

    def lose_the_broker() -> None:
        fleet.paused = True
        kafka.kill()

    def bring_the_broker_back() -> None:
        kafka.start()
        fleet.paused = False

    def set_drifting(number: int) -> None:
        fleet.drifting = number

    def set_silent(value: bool) -> None:  # noqa: FBT001
        fleet.labels_silent = value

    await stories.calm("nothing, for four minutes", CALM_SECONDS)
    drifts = {("StreamwatchDrift", model(number)) for number in range(DRIFTING)}
    await stories.tell(
        f"drift in {DRIFTING} models",
        drifts,
        lambda: set_drifting(DRIFTING),
        lambda: set_drifting(0),
        stays=30,
    )
    await stories.tell(
        f"no labels on the topic of {OF_THE_SILENT_TOPIC} models",
        {("LabelTopicSilent", silent)},
        lambda: set_silent(True),
        lambda: set_silent(False),
        stays=90,
    )
    unreachable: set[Alert] = {("KafkaUnreachable", "")}
    await stories.tell("the broker is down", unreachable, lose_the_broker, bring_the_broker_back, 60)
    await stories.tell("the daemon is stopped", {("Down", "")}, daemon.stop, daemon.start, 60)
    await stories.calm("nothing, for a minute", 60)


def check(stories: Stories, scraped: bytes, promtool: str) -> None:
    """Write the table down, and require that people were notified of what happened and of nothing else."""
    table = stories.table()
    print(table)  # noqa: T201
    if (path := os.environ.get("STREAMWATCH_TABLE")) is not None:
        Path(path).write_text(table, encoding="utf-8")
    checked = subprocess.run([promtool, "check", "metrics"], input=scraped, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr[:2_000]
    for story in stories.reported:
        assert story.fired is not None, story
        assert story.resolved is not None, story
        assert not story.others, story


@pytest.mark.timeout(3_600)
@pytest.mark.real("prometheus", "prometheus-alertmanager", "promtool")
async def test_people_are_notified_of_drifts_silence_a_lost_broker_and_a_stopped_daemon_and_of_nothing_else(
    killable_kafka: KafkaBroker, real_component: Callable[[str], str], tmp_path: Path
) -> None:
    kafka, people = killable_kafka, People()
    topics = {
        name: await create_topic(kafka, fresh(name))
        for name in ("predictions-steady", "predictions-silent", "labels-steady", "labels-silent")
    }
    fleet, stories = Fleet(kafka.bootstrap_servers, topics), Stories(people)
    policy = DEPLOY / "alertmanager" / "alertmanager.yml"
    program = real_component("prometheus-alertmanager")
    async with (
        served(people.listen) as address,
        alertmanager(program, address, tmp_path, policy, group_wait="5s", group_interval="5s") as reported_at,
    ):
        daemon = Daemon(tmp_path, *settings(kafka, topics, reported_at.url, tmp_path))
        daemon.start()
        writing = asyncio.create_task(fleet.write())
        try:
            async with prometheus(
                real_component("prometheus"),
                daemon.address,
                tmp_path,
                faster_rules(tmp_path),
                reported_at.url.removeprefix("http://"),
                SCRAPE_SECONDS,
                SCRAPE_SECONDS,
            ) as asked:
                await asked.answer(f"count(streamwatch_model_info) == {MODELS}")
                people.notified.clear()
                await everything_that_happens(stories, fleet, kafka, daemon, topics["labels-silent"])
            scraped = (await page(f"http://{daemon.address}")).encode()
        finally:
            fleet.stop()
            await writing
            daemon.stop()
    await asyncio.to_thread(check, stories, scraped, real_component("promtool"))


def settings(kafka: KafkaBroker, topics: dict[str, str], reported_at: str, folder: Path) -> list[str]:
    """Overrides of the daemon's settings."""
    receiver = {"name": "alertmanager", "type": "alertmanager", "url": reported_at}
    return [
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={json.dumps([topics['predictions-steady'], topics['predictions-silent']])}",
        f"topics.labels={json.dumps([topics['labels-steady'], topics['labels-silent']])}",
        f"state.directory={folder / 'state'}",
        f"alerts.receivers={json.dumps([receiver])}",
        "alerts.resolve_timeout=3m",
        "join.horizon=1h",
        "join.early_horizon=5m",
    ]
