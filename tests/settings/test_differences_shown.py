"""A changed setting is shown where its values differ, also if they are long."""

from __future__ import annotations

from streamwatch.settings.differences import SettingChange


def test_long_values_are_shown_from_where_they_differ() -> None:
    same = ["a" * 40] * 20
    change = SettingChange("k", [*same, "adwin", *same], [*same, "kswin", *same], "begins anew", "alone")
    text = change.text()
    assert "adwin" in text
    assert "kswin" in text
    assert len(text) < 500
    assert SettingChange("k", 1, 2, "begins anew", "alone").text() == "k: 1 → 2: begins anew, alone"
