"""Label delays in the settings."""

from __future__ import annotations

from pathlib import Path

import yaml

from streamwatch.assembly import specs
from streamwatch.core.predictions.label_delays import LabelDelaysSpec
from streamwatch.settings import load


def test_label_delays_are_off_unless_asked_for_and_then_reach_as_far_as_the_horizon(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    head = {
        "kafka": {"bootstrap_servers": "a:1"},
        "topics": {"predictions": "p", "labels": "l"},
        "join": {"horizon": "64s"},
    }
    for chosen, expected in ({}, ()), ({"label_delays": True}, (LabelDelaysSpec(64_000),)):
        file.write_text(yaml.safe_dump(head | {"monitors": chosen}))
        assert specs.join_spec(load(file, environ={})).prediction_registers == expected
