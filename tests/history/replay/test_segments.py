"""Segments from the lines of a recording to the estimates of each value, and through a state on disk."""

from __future__ import annotations

import json
from pathlib import Path

from streamwatch.cli import app
from tests.commands import CliRunner

SETTINGS = """
kafka: {bootstrap_servers: ["127.0.0.1:9092"]}
topics:
  predictions: [{name: predictions, mapping: {segments: [country]}}]
  labels: [{name: labels}]
monitors: {segments: {alpha: 0.9, measures: [accuracy_ratio]}}
state: {kind: memory}
"""
RIGHT = {"de": 40, "fr": 30}
WRONG = {"de": 10, "fr": 20}


def test_replay_shows_the_estimates_of_every_value(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = []
    labels: list[dict[str, object]] = []
    for country, right in RIGHT.items():
        for i in range(right + WRONG[country]):
            key = f"{country}{i}"
            shown = "x" if i < right else "y"
            at = 1_000 * len(lines)
            lines.append({"id": key, "model": "m", "prediction": shown, "country": country, "timestamp": at})
            labels.append({"id": key, "label": "x", "timestamp": at + 500})
    recording, config = tmp_path / "events.jsonl", tmp_path / "streamwatch.yaml"
    events = sorted([*lines, *labels], key=lambda event: int(str(event["timestamp"])))
    recording.write_text("".join(json.dumps(event) + "\n" for event in events))
    config.write_text(SETTINGS)
    done = CliRunner().invoke(app, ["replay", str(recording), "-c", str(config), "--json"])
    assert done.exit_code == 0, done.output
    metrics = json.loads(done.stdout)["models"]["m"]["metrics"]
    assert metrics["segment_outcomes_total"] == {"country": {"de": 50, "fr": 50}}
    accuracy = metrics["segment_accuracy_ratio"]["country"]
    for name, right in RIGHT.items():
        total = right + WRONG[name]
        weights = [0.9 ** (total - 1 - i) for i in range(total)]
        assert abs(accuracy[name] - sum(weights[:right]) / sum(weights)) < 1e-12
