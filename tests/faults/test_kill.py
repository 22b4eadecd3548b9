"""Killed at any instant while it reads: nothing is lost or counted twice, nothing shown is taken back."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from streamwatch.assembly.state import state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.core.alerting.outbox import Entry
from streamwatch.core.pipeline.pipeline import decoded
from streamwatch.core.records.events import fold_name
from streamwatch.daemon import State
from streamwatch.folds import Scheme
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry
from tests.core.join.cold.cold_streams import alive_outside
from tests.core.join.join_stream import alive
from tests.faults.audited import COLD
from tests.faults.auditing import Opening, Series, counters_of, openings, surviving
from tests.faults.process_runs import ProcessRuns, Scraper, runs_of
from tests.faults.replaying import Replay
from tests.faults.simulation.checks import state_of
from tests.faults.traffic import IN_FOLDS, MODELS, PARTITIONS, Traffic
from tests.integration.conftest import Broker
from tests.integration.topics import create_topic, fresh
from tests.integration.webhook_receiver import SECRET, Receiver, receiving
from tests.ports import free_port
from tests.tiers import by_tier, number

KILLS = number("STREAMWATCH_KILLS", default=10, everything=50)
SEED = int(os.environ.get("STREAMWATCH_SEED", "20250131"))
EARLIEST_SECONDS, SOON_SECONDS, LATEST_SECONDS = 0.005, 0.4, 2.0
SHARE_SOON, SHARE_COMMITTING = 0.5, 0.2
"""Of the kills: before the daemon has got far; at a commit or while it is flushed."""
COMMIT_SECONDS = 0.003
"""About what a commit and its flush take."""
COMPARED = "compared_in_folds"
"""Variant: comparisons, folds and the order of predictions at once, most of what waits outside memory."""
SCHEMES = {COMPARED: Scheme("bootstrap", 3), "folds": Scheme("bootstrap", 3, prequential=False)}
"""How models are validated, by variant. Folds that test some ids only have no order but that of labels."""
VARIANTS: Mapping[str, tuple[float, dict[str, Any]]] = {
    "resolution": (0.4, {}),
    COMPARED: (
        by_tier(fast=0.4, default=0.4, everything=1.0),
        {"order": "prediction_time", "reorder_window": "1500ms"},
    ),
    "folds": (0.4, {}),
    "cold": (0.4, {}),
    "hints": (0.4, {}),
    "revised": (0.4, {"conflicts": "both"}),
    "prediction_time": (
        0.4,
        {"order": "prediction_time", "reorder_window": "1500ms", "on_expiry": {"assume": "a"}},
    ),
}
"""What is varied → its share of the kills, settings of the join."""
LEAST_OUTSIDE = {"cold": 1_000, COMPARED: 100}
"""Variants in which nearly all that waits is outside memory, and more entries than so many in the end."""
ALARM = ("model", "detector", "ordinal", "outcome", "event_ms")
OWED = msgspec.msgpack.Decoder(Entry)
COMMITS: Series = "commits_total", frozenset()
REFUSED = 0.1
"""Share of notifications that their receiver answers with 503: they come again, perhaps after a restart."""

log = logging.getLogger(__name__)


@pytest.mark.timeout(1_800 + 12 * KILLS)
@pytest.mark.parametrize("order", VARIANTS)
async def test_killed_at_random_instants_under_load_it_loses_nothing_and_counts_nothing_twice(
    kafka: Broker, tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share, join = VARIANTS[order]
    kills = round(share * KILLS)
    topics = {side: await create_topic(kafka, fresh(side), PARTITIONS) for side in ("prediction", "label")}
    servers, scheme = kafka.bootstrap_servers, SCHEMES.get(order)
    traffic = Traffic(servers, topics["prediction"], topics["label"], SEED, scheme)
    instants, refusals = Random(f"{SEED} {order}"), Random(SEED)
    began = time.monotonic()
    async with receiving() as receiver:
        receiver.answer = lambda _: 503 if refusals.random() < REFUSED else 200
        settings = document(kafka, topics, tmp_path, join, receiver.url)
        vary(settings, order)
        monkeypatch.setenv(COLD, "1" if order in LEAST_OUTSIDE else "0")
        scraper = Scraper(f"http://{settings['http']['listen']}/metrics")
        async with runs_of(settings, tmp_path) as runs, asyncio.TaskGroup() as tasks:
            scraping, writing = tasks.create_task(scraper.run()), tasks.create_task(traffic.run())
            shown = await kill_again_and_again(runs, scraper, instants, kills)
            traffic.stop.set()
            await writing
            await read_to_the_end(runs, scraper)
            scraping.cancel()
            shown.append(dict(scraper.highest))
    log.info("%s: %d kills in %.0f s", order, kills, time.monotonic() - began)

    state = reopened(Settings(**settings))
    try:
        read = openings(tmp_path)
        replay = Replay(Settings(**settings), surviving(read, state.checkpoint.commits))
        tell(runs, scraper, traffic, read, replay, kills)
        nothing_acknowledged_was_lost(runs, read, state.checkpoint.commits)
        nothing_shown_was_taken_back(scraper, read, shown)
        every_alarm_told_is_in_the_end(runs, receiver, state, replay)
        state_is_that_of_the_replay(state, replay)
        if order == "hints":
            predictions_as_they_came_are_those_of_the_replay(state, replay)
        if scheme:
            comparisons_are_those_of_the_replay(state, replay)
            every_label_counts_once_in_its_folds(state, traffic, scheme)
        if order == "revised":
            what_is_revised_is_counted(state, replay, traffic)
        if (least := LEAST_OUTSIDE.get(order)) is not None:
            assert state.checkpoint.pipeline.join.entries_outside > least
        every_record_counts_once(state, traffic, topics, revised=order == "revised")
        if order not in ("prediction_time", COMPARED):
            every_label_counts_once(state, traffic)
    finally:
        state.store.close()


def document(
    broker: Broker, topics: Mapping[str, str], folder: Path, join: Mapping[str, Any], receiver: str
) -> dict[str, Any]:
    """Settings under which everything happens within seconds, and little stays in memory."""
    return {
        "kafka": {"bootstrap_servers": broker.bootstrap_servers},
        "topics": {f"{side}s": [{"name": name, "mapping": {"id": "key"}}] for side, name in topics.items()},
        "join": {"horizon": "6s", "early_horizon": "5s", "dedup_horizon": "4s", **join},
        "monitors": {"detectors": [{"page_hinkley": {"threshold": 3.0}}, "adwin"]},
        "alerts": {
            "receivers": [{"name": "hook", "type": "webhook", "url": receiver, "secrets": [SECRET]}],
            "cooldown": "1ms",
            "min_outcomes": 0,
            "resolve_timeout": "1s",
            "group_wait": "0s",
            "max_per_minute": 1_000_000,
        },
        "state": {
            "directory": str(folder / "state"),
            "commit_interval": "150ms",
            "journal_outcomes": 1_500,
        },
        "http": {"listen": f"127.0.0.1:{free_port()}"},
    }


def vary(settings: dict[str, Any], order: str) -> None:
    """Add what a variant has beside its settings of the join."""
    monitors = settings["monitors"]
    if scheme := SCHEMES.get(order):
        monitors["comparisons"] = [{"champion": MODELS[0], "challengers": ["*"]}]
        settings["folds"] = {
            "scheme": scheme.validation,
            "k": scheme.folds,
            "prequential": scheme.prequential,
        }
    if order == "hints":
        monitors |= {"early_hints": {}, "label_delays": True}
    if order == "revised":
        monitors |= {"detector_clocks": {"adwin": "prediction"}}


async def kill_again_and_again(
    runs: ProcessRuns, scraper: Scraper, chance: Random, kills: int
) -> list[dict[Series, float]]:
    """The most that had been shown of every counter when each life ended."""
    shown = []
    for _ in range(kills):
        life = await runs.begin()
        kind = chance.random()
        latest = SOON_SECONDS if kind < SHARE_SOON else LATEST_SECONDS
        await asyncio.sleep(chance.uniform(EARLIEST_SECONDS, latest))
        if kind >= 1.0 - SHARE_COMMITTING:
            await runs.until_it_commits(life)
            await asyncio.sleep(max(0.0, chance.uniform(-COMMIT_SECONDS, COMMIT_SECONDS)))
        await runs.end(signal.SIGKILL)
        shown.append(dict(scraper.highest))
    return shown


async def read_to_the_end(runs: ProcessRuns, scraper: Scraper) -> None:
    """A last life, asked to stop when it has read everything there is."""
    life = await runs.begin()
    scraper.latest = {}
    async with asyncio.timeout(900 + 6 * KILLS):
        while not scraper.everything_is_read_and_told:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.05)
    await runs.end(signal.SIGTERM)
    assert '"stopped"' in runs.log(life), runs.log(life)


def reopened(settings: Settings) -> State:
    """What a start finds now."""
    return state_opening(settings, build_topics(settings), Telemetry(stream=io.StringIO()))()


def tell(
    runs: ProcessRuns, scraper: Scraper, traffic: Traffic, read: Sequence[Opening], replay: Replay, kills: int
) -> None:
    """Figures for who runs this by hand: `--log-cli-level=info`."""
    doing = Counter(runs.marker(life).doing for life in range(kills))
    audited = sum(len(frame.events) for opening in read for frame in opening.frames)
    log.info("hit while %s", dict(doing.most_common()))
    log.info("%d scrapes, %d series that grow", scraper.answers, len(scraper.highest))
    log.info(
        "%d records written, %d events read, %d of them survive", traffic.records, audited, replay.events
    )
    log.info("%d alarms, counted %s", len(replay.alarms), dict(traffic.counted))


def nothing_acknowledged_was_lost(runs: ProcessRuns, read: Sequence[Opening], commits: int) -> None:
    """Each life finds the last commit that was flushed before it, or a later one that had been begun."""
    flushed = begun = 0
    found = {opening.head.life: opening.head for opening in read}
    for life in range(runs.number + 1):
        if life in found:
            assert flushed <= found[life].commits <= max(begun, flushed), f"life {life}"
            assert found[life].unaccounted == [], f"life {life}"
        marker = runs.marker(life)
        flushed, begun = max(flushed, marker.flushed), max(begun, marker.begun)
    assert commits == begun == flushed


def nothing_shown_was_taken_back(
    scraper: Scraper, read: Sequence[Opening], shown: Sequence[Mapping[Series, float]]
) -> None:
    """No counter went back from one scrape to the next, and none was ahead of what the next life found."""
    assert scraper.answers > len(shown)
    assert scraper.went_back == []
    assert scraper.highest[COMMITS] > 0
    for opening in read:
        before = shown[opening.head.life - 1] if opening.head.life else {}
        for series, found in opening.head.counted().items():
            assert before.get(series, 0.0) <= found, f"{series} in life {opening.head.life}"
        assert before.get(COMMITS, 0.0) <= opening.head.commits, f"life {opening.head.life}"


def every_alarm_told_is_in_the_end(
    runs: ProcessRuns, receiver: Receiver, state: State, replay: Replay
) -> None:
    """Log and webhook told of nothing that never was; the webhook was told of all, or is yet to be."""
    logged = set()
    for life in range(runs.number + 1):
        lines = [json.loads(line) for line in runs.log(life).splitlines() if "alarm_raised" in line]
        logged |= {tuple(line[field] for field in ALARM) for line in lines}
    raised = {tuple(getattr(alarm, field) for field in ALARM) for alarm in replay.alarms}
    assert logged, "no alarm was raised: the traffic proves nothing about them"
    assert logged <= raised
    told_of = {
        (told.id, *(tuple(alarm[field] for field in ALARM) for alarm in told.alarms))
        for told in receiver.told
    }
    assert {alarm for told in told_of for alarm in told[1:]} <= raised
    assert len({told[0] for told in told_of}) == len(told_of), "an id stands for two notifications"
    notifications = [OWED.decode(entry).notification for entry in state.store.load().outbox.values()]
    owed = {(part.alarm.model, part.alarm.detector) for each in notifications for part in each.parts}
    drifts = {alarm[:2] for alarm in raised if alarm[1] != "verdict"}  # a better verdict announces nothing
    announced = {alarm[:2] for told in told_of for alarm in told[1:]} | owed
    assert drifts == {pair for pair in announced if pair[1] != "verdict"}
    ended = {told.data["incident"] for told in receiver.of("resolved")}
    assert ended <= {told.data["incident"] for told in receiver.of("firing")}
    log.info("%d notifications delivered of %d alarms", len(receiver.told), len(raised))


def state_is_that_of_the_replay(state: State, replay: Replay) -> None:
    """Bitwise, estimators and all; and so is every record that still counts."""
    checkpoint = state.checkpoint
    assert checkpoint.pipeline.identities() == []
    assert counters_of(checkpoint.pipeline.families()) == counters_of(replay.pipeline.families())
    assert state_of(checkpoint.pipeline) == state_of(replay.pipeline)
    assert sorted(checkpoint.monitors.models()) == sorted(replay.monitors.models())
    for model in replay.monitors.models():
        assert checkpoint.monitors.snapshot(model) == replay.monitors.snapshot(model), model
    assert checkpoint.monitors.totals() == replay.monitors.totals()
    outside = alive_outside(checkpoint.pipeline, state.store._runs)
    found = sorted(alive(SimpleNamespace(pipeline=checkpoint.pipeline)) + outside)
    assert found == alive(SimpleNamespace(pipeline=replay.pipeline))
    assert found


def predictions_as_they_came_are_those_of_the_replay(state: State, replay: Replay) -> None:
    """Bitwise: early hints and label delays of every model, and something was counted."""
    kept = decoded(state.checkpoint.pipeline.snapshot()).predictions
    assert kept == decoded(replay.pipeline.snapshot()).predictions
    assert {section.partition(":")[0].partition("(")[0] for section in kept} == {
        "early_hints",
        "label_delays",
    }
    details = state.checkpoint.pipeline.predictions.details()
    assert details == replay.pipeline.predictions.details()
    assert any(document["label_delays"]["labelled"] for document in details.values())
    assert max(document["early_hints"]["predictions"] for document in details.values()) > 1_000


def comparisons_are_those_of_the_replay(state: State, replay: Replay) -> None:
    """Bitwise, and models were compared on common ids."""
    kept, made = state.checkpoint.monitors.comparisons, replay.monitors.comparisons
    assert kept is not None
    assert made is not None
    assert kept.snapshot() == made.snapshot()
    assert state.checkpoint.pipeline.join.counters.pairs_made > 100


def every_label_counts_once_in_its_folds(state: State, traffic: Traffic, scheme: Scheme) -> None:
    """Of each model, and each fold, all outcomes were evaluated or are held for their order."""
    joined = decoded(state.checkpoint.pipeline.snapshot()).join.join_models.models()
    held = {each.name: each.held for each in joined}
    folds = [fold_name(model, fold) for model in IN_FOLDS for fold in range(scheme.folds)]
    for name in (*MODELS, *folds):
        found = state.checkpoint.monitors.outcomes_of(name) + held[name]
        assert found == traffic.outcomes[name] > 50, name


def what_is_revised_is_counted(state: State, replay: Replay, traffic: Traffic) -> None:
    """First predictions are as right as those of the traffic; some were revised, as many as in the replay."""
    details = state.checkpoint.monitors.details()
    assert details == replay.monitors.details()
    for model in MODELS:
        said = details[model]["revisions"]
        assert said["outcomes"] == traffic.outcomes[model]
        assert 0 < said["revised"] <= traffic.revised[model]
        assert said["gained"] + said["lost"] > 0
        assert details[model]["prediction_clock"]["evaluated"] > 0


def every_record_counts_once(
    state: State, traffic: Traffic, topics: Mapping[str, str], *, revised: bool
) -> None:
    """The counters are the totals of what was written.

    Where predictions may be `revised`, what repeats the first one after another class was said is a conflict
    until the label has come, and a duplicate afterwards.
    """
    pipeline, counted = state.checkpoint.pipeline, traffic.counted
    counters = pipeline.join.counters
    holdings = pipeline.join.holdings()
    held = holdings.held - holdings.held_assumed
    reverted = counted["duplicates"] - counters.predictions_duplicate if revised else 0
    assert 0 <= reverted <= traffic.reverted
    assert {
        "predictions": counters.predictions_accepted,
        "duplicates": counters.predictions_duplicate + reverted,
        "conflicts": counters.predictions_conflict - reverted,
        "labels with a model": counters.with_model.accepted,
        "labels for all": counters.without_model.accepted,
        "nulls on predictions": counters.null_records.get(topics["prediction"], 0),
        "nulls on labels": counters.null_records.get(topics["label"], 0),
        "invalid": sum(sum(reasons.values()) for reasons in counters.records_invalid.values()),
        "wrong folds": counters.predictions_wrong_fold,
    } == {total: number for total, number in counted.items() if total != "withdrawn"}
    assert counters.predictions_withdrawn == counted["withdrawn"]
    progress = state.processor.progress
    assert (progress.out_of_order, progress.left_behind) == ({}, 0)
    assert counters.predictions_resolved + held == traffic.outcomes.total()
    assert sum(state.source_positions.positions.values()) >= traffic.records
    for happened in ("predictions_expired", "labels_early", "models_retired"):
        assert getattr(counters, happened) > 0, f"no {happened}: the traffic proves nothing about them"


def every_label_counts_once(state: State, traffic: Traffic) -> None:
    """Each model has been evaluated on each of its labelled predictions, as right or wrong as it was."""
    found = {family.name: dict(family.samples) for family in state.checkpoint.monitors.families()}
    for model in MODELS:
        assert found["outcomes_total"][model,] == traffic.outcomes[model]
        assert found["errors_total"][model,] == traffic.errors[model]
