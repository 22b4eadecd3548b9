"""Predictions and outcomes reach registers in batches of any length, which must not change what they say.

A batch is told as its predictions, then its outcomes: in a long one, predictions of hours after an outcome
are observed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from streamwatch.core.predictions.early_hints.observe import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.register import EarlyHints
from streamwatch.core.predictions.kind import PredictionRegister, batch_of
from streamwatch.core.predictions.label_delays import LabelDelays, LabelDelaysSpec
from streamwatch.core.predictions.sampled_labels import SampledLabelsSpec
from streamwatch.core.predictions.sampled_labels.register import SampledLabels
from streamwatch.core.records.events import Outcome, Prediction

HOUR_MS = 3_600_000
DELAY_MS = 30_000
SCORES = {"a": 0.9, "b": 0.1}
REGISTERS: dict[str, Callable[[], PredictionRegister]] = {
    "early hints": lambda: EarlyHints(EarlyHintsSpec(max_models=1, bucket_ms=HOUR_MS)),
    "label delays": lambda: LabelDelays(LabelDelaysSpec(horizon_ms=HOUR_MS)),
    "sampled labels": lambda: SampledLabels(SampledLabelsSpec(horizon_ms=HOUR_MS)),
}


def pair(number: int, made_ms: int, ahead_ms: int) -> tuple[Prediction, Outcome]:
    """A prediction of a producer whose clock is ahead, and its outcome half a minute later."""
    prediction = Prediction(
        str(number),
        "m",
        "a",
        made_ms,
        made_ms + ahead_ms,
        SCORES,
        label_probability=0.5,
        label_requested=True,
    )
    outcome = Outcome(
        "m",
        "ab"[number % 3 == 0],
        "a",
        made_ms + ahead_ms + DELAY_MS,
        DELAY_MS,
        scores=SCORES,
        resolved_ms=made_ms + DELAY_MS,
        waited_ms=DELAY_MS,
        label_probability=0.5,
        label_requested=True,
    )
    return prediction, outcome


def told(
    make: Callable[[], PredictionRegister], pairs: Sequence[tuple[Prediction, Outcome]], batch_ms: int
) -> PredictionRegister:
    """Tell a register the events of one batch after the other, each with the events of `batch_ms`."""
    register = make()
    ends = sorted({outcome.resolved_ms // batch_ms for _, outcome in pairs})
    for batch in range(ends[-1] + 1):
        made = [each for each, _ in pairs if each.record_ms // batch_ms == batch]
        if made:
            register.observe(batch_of(made))
        resolved = [each for _, each in pairs if each.resolved_ms // batch_ms == batch]
        if resolved:
            register.learn(resolved)
    return register


@pytest.mark.parametrize("ahead_ms", [0, 120_000, 100 * HOUR_MS])
@pytest.mark.parametrize("name", REGISTERS)
def test_a_register_says_the_same_of_a_log_in_one_batch_and_in_many(name: str, ahead_ms: int) -> None:
    pairs = [pair(i, i * HOUR_MS // 20, ahead_ms * (i % 2)) for i in range(240)]
    alike = [
        told(REGISTERS[name], pairs, batch_ms) for batch_ms in (20_000, 100_000, 5 * HOUR_MS, 100 * HOUR_MS)
    ]
    assert alike[0].snapshot()
    assert [each.snapshot() for each in alike[1:]] == [alike[0].snapshot()] * 3
    assert [each.details() for each in alike[1:]] == [alike[0].details()] * 3


def test_labels_of_predictions_whose_bucket_has_been_used_again_are_counted() -> None:
    pairs = [pair(i, i * HOUR_MS // 20, 0) for i in range(240)]
    register = told(REGISTERS["sampled labels"], pairs, 100 * HOUR_MS)
    (labels,) = [each for each in register.families() if each.name == "sampled_labels_total"]
    assert labels.samples == [(("m",), 240.0)]
