"""`streamwatch state show`: whose state it is, how far it has read, what waits."""

from __future__ import annotations

import json

import pytest

from streamwatch.edge.stores.rocksdb.database import SCHEMA
from streamwatch.edge.stores.rocksdb.opening import FORMAT
from tests.edge.stores.rocksdb.written_state import Life, contents


def test_show_lists_whose_state_it_is_how_far_it_has_read_and_what_waits(streamwatch, directory):
    before = contents(directory)
    code, out, _ = streamwatch("show", "--directory", directory)
    assert code == 0, out
    identity = json.loads((directory / FORMAT).read_text())["identity"]
    for shown in (
        f"{identity} in {directory}",
        f"schema {SCHEMA}, 11 commits",
        "predictions[0] at 413",
        "1970-01-01 00:00:18 UTC",
        "1 with a model; 2 without, 1 unmatched",
        "m: page_hinkley, warning, since 1970-01-01 00:00:05 UTC",
        "1 to chat, 1 to oncall",
        "landmark",
    ):
        assert shown in out
    assert contents(directory) == before


def test_show_as_json_has_every_number(streamwatch, directory):
    code, out, _ = streamwatch("show", "--directory", directory, "--json")
    assert code == 0
    seen = json.loads(out)
    assert seen["in_use_by"] is None
    assert {model["model"]: model["pending"] for model in seen["models"]} == {"m": 49, "n": 50}
    for model in seen["models"]:
        assert sum(model["ages"]) == model["pending"]
    assert len(seen["models"][0]["ages"]) == len(seen["age_bounds_seconds"]) + 1
    assert seen["models"][0]["oldest_seconds"] == pytest.approx(18.5 - 0.015)
    assert seen["positions"][1] == {"topic": "predictions", "partition": 0, "position": 413}
    assert seen["clock_ms"] == 18_500
    assert seen["labels"] == {"waiting": 1, "retained": 2, "unmatched": 1}
    assert seen["dedup_entries"] == 151
    assert seen["journal"]["outcomes"] > 0
    assert seen["models"][0]["snapshot_bytes"] > 0
    assert seen["outbox"] == {"chat": 1, "oncall": 1}
    assert seen["bytes"]["total"] >= sum(size for part, size in seen["bytes"].items() if part != "total")


def test_show_without_ages_is_asked_for_by_quick(streamwatch, directory):
    _, out, _ = streamwatch("show", "-d", directory, "--json", "--quick")
    model = json.loads(out)["models"][0]
    assert (model["ages"], model["oldest_seconds"], model["pending"]) == (None, None, 49)
    code, out, _ = streamwatch("show", "-d", directory, "--quick")
    assert code == 0
    assert "oldest" not in out


def test_a_state_just_made_can_be_shown_and_verified(streamwatch, tmp_path):
    Life(tmp_path / "new").store.close()
    code, out, _ = streamwatch("show", "-d", tmp_path / "new")
    assert code == 0
    assert f"schema {SCHEMA}, 0 commits" in out
    assert streamwatch("verify", "-d", tmp_path / "new")[0] == 0
