"""The same job in Quix Streams and river: join by id in its state, estimators of each model.

    .cache/quix/bin/python -m tests.bench.peers.quix SERVERS PREDICTIONS,LABELS MESSAGES

It pins another version of confluent-kafka than the tests use, so it runs in an environment of its own. river
has fewer estimates than the daemon (`kernel_vs_river` says which), there is no expiry and no order by time.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from typing import Any

from quixstreams import Application

from tests.bench.river_estimators import RiverEstimators


def read(servers: str, topics: list[str], messages: int) -> dict[str, float]:
    """Join and evaluate so many messages; CPU since the first of them."""
    estimators: dict[str, RiverEstimators] = defaultdict(RiverEstimators)
    began: list[float] = []
    outcomes = 0

    def take(value: Any, state: Any) -> None:
        nonlocal outcomes
        if not began:
            began.extend((time.process_time(), time.monotonic()))
        waiting = state.get("waiting", {})
        label = value.get("label") or state.get("label")
        if "prediction" in value:
            waiting[value["model"]] = value["prediction"]
        if label is None:
            state.set("waiting", waiting)
            return
        for model, predicted_class in waiting.items():
            estimators[model].update(label, predicted_class)
            outcomes += 1
        state.set("waiting", {})
        state.set("label", label)

    with tempfile.TemporaryDirectory() as folder:
        app = Application(
            broker_address=servers,
            consumer_group=f"quix-{uuid.uuid4().hex[:8]}",
            auto_offset_reset="earliest",
            state_dir=folder,
            use_changelog_topics=False,
            loglevel="ERROR",
        )
        first, second = (app.dataframe(app.topic(name, value_deserializer="json")) for name in topics)
        first.concat(second).update(take, stateful=True)
        app.run(count=messages, timeout=60)
    return {
        "cpu": time.process_time() - began[0],
        "wall": time.monotonic() - began[1],
        "outcomes": float(outcomes),
    }


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]))))
