"""Steps that wait leave what steps taken one by one leave, to the bit; every claim comes at its outcome."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import UtilitySpec
from tests.core.estimators.kernel.streams import late_labels, one_row, scores_in, some_scores
from tests.core.estimators.verdicts.plain_verdict import PlainVerdict
from tests.layouts import DEFAULT
from tests.tiers import few

OUTCOMES = 9_000
FREQUENT = replace(
    DEFAULT,
    verdict_outcomes=400,
    confidence_delta=0.9,
    utilities=(UtilitySpec(), UtilitySpec("*", "balanced")),
)
"""A verdict is claimed every few hundred outcomes, and opens as often."""
KINDS = ("accuracy", "balanced")


def stream(seed):
    """Phases of labels that repeat, of models that are right, of both or neither, and of silence."""
    rng = np.random.default_rng(seed)
    true_class, predicted_class = np.zeros(OUTCOMES, np.int32), np.zeros(OUTCOMES, np.int32)
    at, label = 0, 0
    while at < OUTCOMES:
        length = int(rng.integers(50, 1_500))
        repeats, right = rng.choice([0.2, 0.6, 0.9, 1.0]), rng.choice([0.3, 0.6, 0.9, 1.0])
        for t in range(at, min(at + length, OUTCOMES)):
            label = label if rng.random() < repeats else int(rng.integers(0, 4) ** 2 // 4)
            true_class[t] = label
            predicted_class[t] = label if rng.random() < right else int(rng.integers(0, 3))
        at += length
    return true_class, predicted_class


def made(kind):
    table = ModelTable(FREQUENT)
    table.add_model(UtilitySpec("*" * (kind == "balanced"), kind) if kind == "balanced" else UtilitySpec())
    return table


def folded(table, seed, edges, *, fold="fold", look=False, again=None):
    """Fold a stream in parts, half of it with scores; gives alarms by position, and the last table."""
    true_class, predicted_class = stream(seed)
    known, scores = late_labels(true_class, seed), some_scores(true_class, seed)
    alarms = []
    for start, stop in pairwise([0, *edges, OUTCOMES]):
        part = slice(start, stop)
        found = getattr(table, fold)(
            one_row(stop - start),
            true_class[part],
            predicted_class[part],
            known[part],
            scores_in(scores, part),
            np.arange(start, stop) * 1_000,
        )
        found = found.alarms if fold == "trace" else found
        alarms += [a._replace(position=start + a.position) for a in found]
        if look:
            table.verdicts(np.array([0]))
        if again is not None:
            kept, table = table.snapshot(0), again()
            table.restore(0, kept)
    return alarms, table


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", few(range(2), 1))
def test_it_does_not_matter_when_steps_are_taken(seed, kind) -> None:
    alarms, whole = folded(made(kind), seed, [])
    assert len([a for a in alarms if a.detector == len(FREQUENT.detectors)]) >= 8
    edges = np.unique(np.random.default_rng(seed).integers(1, OUTCOMES, 300)).tolist()
    for found, table in (
        folded(made(kind), seed, edges),
        folded(made(kind), seed, edges, look=True),
        folded(made(kind), seed, edges[::10], again=lambda: made(kind)),
        folded(made(kind), seed, [], fold="trace"),
    ):
        assert found == alarms
        assert table.snapshot(0) == whole.snapshot(0)


@pytest.mark.parametrize("seed", range(2))
def test_the_verdict_on_no_change_is_that_of_the_definition(seed) -> None:
    true_class, predicted_class = stream(seed)
    alarms, table = folded(made("accuracy"), seed, [])
    plain = PlainVerdict(FREQUENT.verdict_outcomes, FREQUENT.confidence_delta)
    expected = []
    previous = true_class[:-1]
    leads = (predicted_class[1:] == true_class[1:]) * 1.0 - (previous == true_class[1:])
    for t, lead in enumerate(leads.tolist(), 1):
        if plain.take(lead, t + 1, 1_000 * t):
            expected.append((t, plain.verdict, *plain.since))
    changes = [a for a in alarms if a.detector == len(FREQUENT.detectors)]
    assert [(a.position, a.after, a.since, a.since_ms) for a in changes] == expected
    verdicts = table.verdicts(np.array([0]))
    j = table.layout.opponents.index("persistent")
    assert verdicts.verdict[j, 0] == plain.verdict
    assert verdicts.dispersion[j, 0] == pytest.approx(plain.phi, rel=1e-9)
    np.testing.assert_allclose(
        (verdicts.lead[j, 0], verdicts.lower[j, 0], verdicts.upper[j, 0]), plain.interval(), rtol=1e-9
    )
    for found, side in ((verdicts.better, plain.better), (verdicts.worse, plain.worse)):
        share = np.log(max(side.mean, 1.0)) / np.log(plain.threshold)
        assert found[j, 0] == pytest.approx(share, rel=1e-9, abs=1e-12)


def test_steps_that_can_change_no_verdict_are_taken_once_in_64_outcomes() -> None:
    """A model that is better than all others, where leads of one opponent come with every second outcome."""
    rng = np.random.default_rng(3)
    true_class = rng.integers(0, 2, 6_000).astype(np.int32)
    predicted_class = np.where(rng.random(6_000) < 0.9, true_class, 1 - true_class).astype(np.int32)
    table = ModelTable(replace(FREQUENT, verdict_outcomes=10_000, confidence_delta=0.05))
    table.add_model()
    settled = []
    for part in [slice(5_000), *(slice(t, t + 1) for t in range(5_000, 6_000))]:
        table.fold(one_row(part.stop - (part.start or 0)), true_class[part], predicted_class[part])
        settled.append(int(table.pools.models["waiting"]["settled"][0, 0]))
    assert (table.verdicts(np.array([0])).verdict[0] == 1.0).all()
    assert len(set(settled)) <= 1_000 // 64 + 2
