"""After warming up nothing is left to compile, whatever the estimators live through."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pkgutil import walk_packages

import pytest

from streamwatch.core.estimators import comparisons, kernel, registers
from streamwatch.core.estimators.warming import ENTRIES
from streamwatch.core.jit import CompiledFunction

pytestmark = pytest.mark.slow

LIFE = """
import json, random, sys
from streamwatch.core.records.events import Outcome
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.set import EstimatorSet
from dataclasses import replace
from streamwatch.core.specs import AdwinSpec, FadingSpec, MonitorsSpec
from streamwatch.core.estimators.warming import ENTRIES, warm_up
from tests.layouts import TINY

SPECS = {
    "as in settings that say nothing": (MonitorsSpec(), False),
    "many classes": (MonitorsSpec(max_classes=5_000), False),
    "few estimators": (replace(TINY, max_models=100), False),
    "a slow window": (
        MonitorsSpec((FadingSpec(), AdwinSpec(clock=3_000)), (), (), shadow_max_classes=0), False
    ),
    "a trace": (MonitorsSpec(max_classes=30), True),
    "segments": (
        MonitorsSpec(registers=(SegmentsSpec(max_values=3, names=frozenset({"country"})),)), False
    ),
    "revisions": (MonitorsSpec(registers=(RevisionsSpec(60_000),)), False),
    "cohorts": (MonitorsSpec(registers=(CohortsSpec(60_000),)), False),
    "prediction clock": (replace(TINY, max_models=100, registers=(PredictionClockSpec(100),)), False),
}
spec, tracing = SPECS[sys.argv[1]]
warm_up(spec, tracing=tracing)


def signatures():
    return {f"{e.__module__}.{e.__name__}": sorted(map(str, e.signatures)) for e in ENTRIES}


def outcomes(n, models, classes, seed):
    drawn = random.Random(seed)
    for i in range(n):
        true_class = f"c{drawn.randrange(classes)}"
        right = drawn.random() < (0.9 if i < n // 2 else 0.4)
        predicted_class = true_class if right else f"c{drawn.randrange(classes)}"
        scores = {true_class: 0.6, predicted_class: 0.4} if i % 3 == 0 else None
        label = f"c{drawn.randrange(classes)}" if i % 2 else None
        yield Outcome(
            f"m{i % models}",
            true_class,
            predicted_class,
            event_ms=i,
            delay_ms=i % 9,
            label_at_prediction=label,
            scores=scores,
            segments={"country": f"v{drawn.randrange(9)}"} if i % 5 else None,
            last_class=f"c{drawn.randrange(classes)}" if i % 4 == 0 else None,
        )


before = signatures()
monitors = EstimatorSet(spec)
monitors.fold([Outcome("steady", "c", "c", event_ms=0, delay_ms=0)] * 9_000)  # its windows only grow
for models, classes in ((1, 2), (3, 12), (40, 6_000), (2, 5)):
    batch = list(outcomes(4_000, models, classes, models))
    for since in range(0, len(batch), 500):
        monitors.fold(batch[since : since + 500])
    if tracing:
        monitors.trace(batch[:50])
    monitors.families()
    monitors.facts.levels(monitors.models())
    kept = [monitors.snapshot(model) for model in monitors.models()]
    for snapshot in kept[::2]:
        monitors.restore(snapshot)
    monitors.retire("m0")
again = EstimatorSet(spec)
for snapshot in kept:
    again.restore(snapshot)
again.fold(list(outcomes(2_000, 3, 50, 0)))
again.families()
print(json.dumps([before, signatures()]))
"""


@pytest.mark.parametrize(
    "spec",
    [
        "as in settings that say nothing",
        "many classes",
        "few estimators",
        "a slow window",
        "a trace",
        "segments",
        "revisions",
        "cohorts",
        "prediction clock",
    ],
)
def test_nothing_is_compiled_after_warming_up(spec: str) -> None:
    # Another process: in this one, other tests may have had compiled what warming up leaves out.
    done = subprocess.run([sys.executable, "-c", LIFE, spec], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert after == before
    assert before["streamwatch.core.estimators.kernel.fold.fold"], "it is the same table"


def test_every_compiled_function_that_python_calls_is_counted() -> None:
    found = {
        value
        for name in _modules()
        for value in vars(sys.modules[name]).values()
        if isinstance(value, CompiledFunction) and value.kept
    }
    assert found == set(ENTRIES)


def _modules() -> Iterator[str]:
    for package in (kernel, comparisons, registers):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            if found.name in sys.modules:
                yield found.name
