"""Settings that were renamed between versions: the error says what they are called now."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamwatch.settings import SettingsError, load
from streamwatch.settings.faults import (
    REMOVED,
    RENAMED,
    _keys,  # pyright: ignore[reportPrivateUsage]
)
from streamwatch.settings.settings import Settings

LEAST = "kafka: {bootstrap_servers: localhost:9092}\ntopics: {predictions: p, labels: l}\n"


def complaint(tmp_path: Path, key: str) -> str:
    """The error about a file that has the key; the section of a list is its first entry."""
    section, *between, last = key.split(".")
    value = f"{{{last}: 1}}"
    for name in reversed(between):
        value = f"{{{name}: [{value}]}}"
    text = LEAST
    if section == "kafka":
        text = LEAST.replace("9092}", f"9092, {last}: 1}}")
    else:
        text += f"{section}: {value}\n"
    file = tmp_path / "streamwatch.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as error:
        load(file, environ={})
    return str(error.value)


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_renamed_key_is_reported_with_its_new_name(tmp_path: Path, old: str, new: str) -> None:
    stated = complaint(tmp_path, old)
    shown = old.replace("receivers.", "receivers[0].")
    assert f"{shown} in {tmp_path / 'streamwatch.yaml'}: renamed: it is now called {new}" in stated


@pytest.mark.parametrize("old", REMOVED)
def test_a_removed_key_is_reported_with_what_there_is_instead(tmp_path: Path, old: str) -> None:
    assert f"{old} in {tmp_path / 'streamwatch.yaml'}: no longer a setting: {REMOVED[old]}" in complaint(
        tmp_path, old
    )


@pytest.mark.parametrize("path", [*RENAMED, *RENAMED.values(), *REMOVED])
def test_the_table_names_keys_that_are_no_more_and_keys_that_there_are(path: str) -> None:
    *section, last = path.split(".")
    assert (last in _keys(Settings, section)) is (path in RENAMED.values())


def test_a_renamed_variable_of_the_environment_is_reported_too(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(LEAST)
    with pytest.raises(SettingsError, match=r"it is now called join\.dedup_horizon") as error:
        load(file, environ={"STREAMWATCH__JOIN__TOMBSTONE_HORIZON": "1d"})
    assert "environment variable STREAMWATCH__JOIN__TOMBSTONE_HORIZON" in str(error.value)
