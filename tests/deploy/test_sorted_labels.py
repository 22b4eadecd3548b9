"""ModelWorseThanPersistent over a simulated stream: labels in time, in sorted dumps, and put in order.

The simulation goes through the pipeline; what it reports becomes the series of a unit test of promtool's.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import PREFIX
from streamwatch.core.records.events import Label, Prediction
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.demo.simulated import BLOCK, DelaySpec, StreamSpec, blocks
from tests.core.join.join_stream import DAY, Stream
from tests.deploy.rules import RULE_FILES, names_in, rules

STREAM = StreamSpec(seed=3, models=2, drift_every=12_000, delay=DelaySpec(never=0.0))
"""`stable-v1` is right nine times in ten, `drifting-v2` is worse than the previous label from 12,000 on."""
DAYS, A_DAY = 10, 2_000
SAMPLES_A_DAY = 8
HELD_MINUTES = 20
"""For so long Prometheus sees each sample: alerts wait at most 15 minutes before they fire."""
USED = {name.removeprefix(PREFIX) for rule in rules() for name in names_in(rule["expr"])}


def predictions_and_labels() -> Iterator[tuple[list[Prediction], list[Label]]]:
    """The stream by days; a label's time is that of its predictions."""
    rows: list[tuple[list[Prediction], Label]] = []
    for block in blocks(STREAM):
        for row in range(BLOCK):
            number = block.first + row
            record_ms = DAY + number * (DAY // A_DAY)
            made = [
                Prediction(str(number), name, STREAM.classes[block.predicted_class[model, row]], record_ms)
                for model, name in enumerate(STREAM.model_names)
            ]
            rows.append((made, Label(str(number), STREAM.classes[block.true_class[row]], record_ms)))
        if len(rows) == A_DAY:
            yield [p for made, _ in rows for p in made], [label for _, label in rows]
            rows = []


def in_time(spec: JoinSpec) -> list[dict[tuple[str, ...], float]]:
    """Every label comes before the next prediction."""
    stream = Stream(spec, monitors=EstimatorSet(MonitorsSpec(max_models=2, max_classes=4)))
    seen = []
    for predictions, labels in islice(predictions_and_labels(), DAYS):
        by_id = defaultdict[str, list[Prediction]](list)
        for prediction in predictions:
            by_id[prediction.id].append(prediction)
        for number, label in enumerate(labels, 1):
            stream.feed(*by_id[label.id], label)
            if number % (A_DAY // SAMPLES_A_DAY) == 0:
                stream.until(label.record_ms)
                seen.append(reported(stream))
    return seen


def in_dumps_sorted_by_class(spec: JoinSpec) -> list[dict[tuple[str, ...], float]]:
    """All labels of a day come at its end, in half a minute, sorted by class."""
    stream = Stream(spec, monitors=EstimatorSet(MonitorsSpec(max_models=2, max_classes=4)))
    seen = []
    for day, (predictions, labels) in enumerate(islice(predictions_and_labels(), DAYS), 2):
        stream.feed(*predictions)
        stream.until(day * DAY)
        dump = sorted(labels, key=lambda label: (label.true_class, int(label.id)))
        step = A_DAY // (SAMPLES_A_DAY - 1)
        for first in range(0, A_DAY, step):
            part = dump[first : first + step]
            times = [day * DAY + (first + n) * 30_000 // A_DAY for n in range(len(part))]
            stream.feed(
                *(Label(label.id, label.true_class, at) for label, at in zip(part, times, strict=True))
            )
            stream.until(times[-1])
            seen.append(reported(stream))
        stream.until(day * DAY + 120_000)  # the order buffer's window ends
        seen.append(reported(stream))
    return seen


def reported(stream: Stream) -> dict[tuple[str, ...], float]:
    """What the rules read, by name and label pairs; the daemon adds what is known about models."""
    found = {("model_info", f'model="{model}"'): 1.0 for model in STREAM.model_names}
    for family in stream.pipeline.families():
        if family.kind != "histogram" and family.name in USED:
            for values, value in family.samples:
                pairs = (f'{n}="{v}"' for n, v in zip(family.labels, values, strict=True))
                found[family.name, *pairs] = float(value)
    return found


def series(seen: Sequence[dict[tuple[str, ...], float]]) -> list[dict[str, str]]:
    """As promtool wants them: each sample every minute while it is held."""
    target = ('job="streamwatch"', 'instance="s:9877"')
    made = []
    for name, *pairs in sorted({key for sample in seen for key in sample}):
        values = [sample.get((name, *pairs)) for sample in seen]
        held = HELD_MINUTES - 1
        text = " ".join(f"_x{held + 1}" if value is None else f"{value!r}x{held}" for value in values)
        made.append({"series": f"{PREFIX}{name}{{{','.join((*pairs, *target))}}}", "values": text})
    return made


def shipped_rules(directory: Path, *alerts: str) -> list[str]:
    """The rules' files as shipped, of their alerts only these: promtool evaluates each one every minute."""
    files: list[str] = []
    for shipped in RULE_FILES:
        document = yaml.safe_load(shipped.read_text(encoding="utf-8"))
        for group in document["groups"]:
            group["rules"] = [rule for rule in group["rules"] if rule.get("alert", alerts[0]) in alerts]
        files.append(str(directory / shipped.name))
        Path(files[-1]).write_text(json.dumps(document), encoding="utf-8")
    return files


FIRED = 'group by (model) (last_over_time(ALERTS{{alertname="{}",alertstate="firing"}}[2d]))'
BELOW = (
    "group by (model) (last_over_time(("
    'model_forgetting:streamwatch_accuracy:upper{forgetting=~"fading:.+"}'
    " < model_forgetting:streamwatch_baseline_accuracy:persistent)[2d:10m]))"
)


def expected(expr: str, minutes: int, models: Sequence[str]) -> dict[str, Any]:
    samples = [{"labels": f'{{model="{model}"}}', "value": 1} for model in models]
    return {"expr": expr, "eval_time": f"{minutes}m", "exp_samples": samples}


@pytest.mark.slow
@pytest.mark.real("promtool")
@pytest.mark.parametrize(
    ("arrive", "order", "below", "worse", "doubtful"),
    [
        (in_time, "resolution", ["drifting-v2"], ["drifting-v2"], []),
        (
            in_dumps_sorted_by_class,
            "resolution",
            ["drifting-v2", "stable-v1"],
            [],
            ["drifting-v2", "stable-v1"],
        ),
        (in_dumps_sorted_by_class, "prediction_time", ["drifting-v2"], ["drifting-v2"], []),
    ],
    ids=["in time", "sorted", "sorted, put in the order of predictions"],
)
def test_a_model_is_called_worse_than_the_previous_label_only_where_order_means_something(
    real_component: Callable[[str], str],
    tmp_path: Path,
    arrive: Callable[[JoinSpec], list[dict[tuple[str, ...], float]]],
    order: Any,
    below: list[str],
    worse: list[str],
    doubtful: list[str],
) -> None:
    seen = arrive(JoinSpec(horizon_ms=3 * DAY, order=order))
    minutes = len(seen) * HELD_MINUTES - 1
    test = {
        "interval": "1m",
        "input_series": series(seen),
        "promql_expr_test": [
            expected(BELOW, minutes, below),
            expected(FIRED.format("ModelWorseThanPersistent"), minutes, worse),
            expected(FIRED.format("LabelOrderDoubtful"), minutes, doubtful),
        ],
    }
    file = tmp_path / "simulated.test.yml"  # JSON is YAML
    files = shipped_rules(tmp_path, "ModelWorseThanPersistent", "LabelOrderDoubtful")
    file.write_text(json.dumps({"rule_files": files, "evaluation_interval": "1m", "tests": [test]}))
    ran = subprocess.run(
        [real_component("promtool"), "test", "rules", str(file)],
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()
