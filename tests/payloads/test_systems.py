"""Payloads of public systems go through `inspect --write`, `check` and `replay`, and come out right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamwatch.admin.kafka_check import check_ids, check_payload
from streamwatch.assembly.inspection import inspect
from streamwatch.assembly.topics import build_topics
from streamwatch.cli import app
from streamwatch.core.records.events import EventGroup
from streamwatch.settings import load
from tests.commands import CliRunner
from tests.inspection.test_guessing import kcat_lines
from tests.payloads.pages import PAGES
from tests.payloads.systems import SYSTEMS, System
from tests.tiers import by_tier

UNDERSTOOD = [system for system in SYSTEMS if not system.cannot]
OTHERS = [system for system in SYSTEMS if system.cannot]
STEP = by_tier(fast=6, rotating=4, default=1, everything=1)


def name_of(system: System) -> str:
    return system.name


@pytest.mark.parametrize("system", UNDERSTOOD[::STEP], ids=name_of)
def test_a_payload_is_found_checked_and_evaluated_as_an_independent_count_has_it(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    recording, written = tmp_path / "sample.jsonl", tmp_path / "streamwatch.yaml"
    recording.write_text("\n".join(kcat_lines(system.payload.sort())))
    found = CliRunner().invoke(app, ["inspect", "--file", str(recording), "--write", str(written)])
    assert found.exit_code == 0, found.output

    settings = load(written)
    topics = build_topics(settings)
    samples = {name: records[:100] for name, records in system.payload.topics.items()}
    for name, topic in topics.items():
        checked = check_payload(name, None, samples[name], topic.decoder)
        assert checked.good, checked
        assert not checked.details, checked
    decoded = [
        event
        for name, topic in topics.items()
        for each in topic.decoder.decode_all(
            system.payload.topics[name], [0] * len(system.payload.topics[name])
        )
        for event in (each.events if isinstance(each, EventGroup) else (each,))
    ]
    ids = check_ids(decoded)
    assert ids is not None
    assert ids.good, ids

    asked = ["replay", str(recording), "--config", str(written), "--json"]
    replayed = CliRunner().invoke(app, asked)
    assert replayed.exit_code == 0, replayed.output
    result = json.loads(replayed.stdout)
    assert result["invalid"] == {}
    assert result["pending"] == 0
    models = {name: model["metrics"] for name, model in result["models"].items()}
    assert models.keys() == system.outcomes.keys()
    for name, (count, right) in system.outcomes.items():
        assert models[name]["outcomes_total"] == count
        assert models[name]["accuracy_ratio"]["landmark"] == pytest.approx(right / count, abs=1e-12)


@pytest.mark.parametrize("system", OTHERS, ids=name_of)
def test_what_cannot_be_joined_is_said(system: System) -> None:
    said = " ".join(inspect(system.payload.sort().topics).problems)
    assert [word for word in system.cannot if word not in said] == []


def test_the_page_lists_every_system_and_says_which_are_not_understood() -> None:
    page = " ".join((PAGES / "README.md").read_text().split())
    understood, others = page.split("Not understood:")
    assert [system.name for system in UNDERSTOOD if system.name not in understood] == []
    assert [system.name for system in OTHERS if system.name not in others] == []
