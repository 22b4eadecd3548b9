"""Kafka Connect carries outcomes and events into files, and DuckDB answers the queries of the page."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests import real
from tests.deploy.repository import ROOT
from tests.integration.conftest import Broker
from tests.integration.connect_standalone import connect
from tests.integration.results_topics import Topics, committed
from tests.integration.running import DEADLINE_SECONDS, child
from tests.integration.test_one_order import Written, overrides
from tests.integration.test_results_topics import all_published, read_topics

PAGE = ROOT / "docs" / "how-to" / "outcomes-topic.md"


def queries() -> list[str]:
    """The queries of the page."""
    return re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def lines_of(file: Path, count: int) -> list[str]:
    """So many lines, once they are there."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not file.exists() or len(lines := file.read_text("utf-8").splitlines()) < count:
        assert time.monotonic() < deadline, f"{file} has no {count} lines"
        time.sleep(0.2)
    return lines


@pytest.mark.timeout(900)
async def test_connect_writes_what_is_committed_and_the_queries_of_the_page_answer(
    kafka: Broker, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.need(request.node.nodeid, "kafka connect")
    topics, results = await read_topics(kafka), await Topics.on(kafka)
    writer = Written(kafka, topics, seed=3)
    settings = [*overrides(kafka, topics, "first", tmp_path / "state"), *results.settings()]
    with child(tmp_path, *settings) as daemon:
        await writer.write()
        await all_published(daemon, writer.records)
        assert daemon.end(signal.SIGTERM)[0] == 0
    [outcomes] = committed(kafka.bootstrap_servers, results.outcomes)
    [events] = committed(kafka.bootstrap_servers, results.events)
    files = {results.outcomes: tmp_path / "outcomes.jsonl", results.events: tmp_path / "events.jsonl"}
    with connect(kafka.bootstrap_servers, tmp_path, files):
        lines = await asyncio.to_thread(lines_of, files[results.outcomes], len(outcomes))
        await asyncio.to_thread(lines_of, files[results.events], len(events))
    assert len(lines) == len(outcomes)
    with files[results.outcomes].open("a") as file:  # a worker that died delivers its last records again
        file.writelines(f"{line}\n" for line in lines[-50:])
    monkeypatch.chdir(tmp_path)
    by_day, confused, around = (duckdb.sql(query).fetchall() for query in queries())
    documents = [document for _, document in outcomes]
    observed = [document for document in documents if not document["assumed"]]
    expected = Counter(document["model"] for document in observed)
    assert {model: sum(row[2] for row in by_day if row[0] == model) for model in expected} == expected
    for model, count in expected.items():
        right = sum(document["right"] for document in observed if document["model"] == model)
        assert sum(row[2] * row[3] for row in by_day if row[0] == model) == pytest.approx(right)
        assert count > 1_000
    errors = Counter((d["model"], d["label"], d["prediction"]) for d in observed if not d["right"])
    assert {row[:3]: row[3] for row in confused} == errors
    latest = {d["id"] for d in observed if not d["right"]}
    assert all(len(row[4]) == min(3, row[3]) and set(row[4]) <= latest for row in confused)
    alarms = [document for _, document in events if document["type"] == "alarm"]
    assert len(around) == len(alarms) > 0
    for model, detector, ordinal, outcome, before, after in around:
        assert (model, detector, ordinal, outcome) in {
            (d["model"], d["detector"], d["ordinal"], d["outcome"]) for d in alarms
        }
        of_model = [d["right"] for d in documents if d["model"] == model]
        earlier = of_model[max(0, outcome - 501) : outcome - 1]
        assert before == pytest.approx(sum(earlier) / len(earlier))
        window = of_model[outcome - 1 : outcome + 499]
        assert after == pytest.approx(sum(window) / len(window))
