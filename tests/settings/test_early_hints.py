"""Early hints in the settings: off, on with defaults or others, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamwatch.assembly import specs
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.settings import Settings, SettingsError, load

HEAD: dict[str, Any] = {
    "kafka": {"bootstrap_servers": "a:1"},
    "topics": {"predictions": "p", "labels": "l"},
    "join": {"horizon": "64s"},
}


def read(folder: Path, monitors: dict[str, Any]) -> Settings:
    file = folder / "streamwatch.yaml"
    file.write_text(yaml.safe_dump(HEAD | {"monitors": monitors}))
    return load(file, environ={})


def registers(folder: Path, monitors: dict[str, Any]) -> object:
    return specs.join_spec(read(folder, monitors)).prediction_registers


def test_they_are_off_unless_asked_for_and_then_have_the_buckets_of_late_labels(tmp_path: Path) -> None:
    assert registers(tmp_path, {}) == ()
    assert registers(tmp_path, {"early_hints": None}) == ()
    assert registers(tmp_path, {"early_hints": {}}) == (EarlyHintsSpec(bucket_ms=1_500),)
    chosen = {"predictions": 2_000_000, "delta": 0.01, "reach": 61_440, "max_models": 7}
    assert registers(tmp_path, {"early_hints": chosen}) == (
        EarlyHintsSpec(2_000_000, 0.01, 61_440, 7, 1_500),
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"reach": 4_095}, r"monitors\.early_hints\.reach"),
        ({"delta": 0}, r"monitors\.early_hints\.delta"),
        ({"reach": 200_000}, r"reach: expected at most predictions \(100000\), got 200000"),
        ({"models": 3}, r"monitors\.early_hints\.models"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_key(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, {"early_hints": wrong})
