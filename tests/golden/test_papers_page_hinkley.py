"""Table 2 of Gama, Sebastião, Rodrigues 2009: how late Page-Hinkley sees the drifts of SEA, by its fading
factor.

    1 - α       1e-4      1e-5   1e-6   1e-7   1e-8      0
    1st drift   1045 (1)  1609   2039   2089   2094   2095
    2nd drift    654 (0)  2129   2464   2507   2511   2511        (false alarms)
    3rd drift    856 (1)  1357   1609   1637   2511   1641

δ = 1e-3, λ = 2.5, on the error rate of a naive Bayes classifier. The table is one run of one stream; what
is compared is the order of magnitude and the ordering in α, over 10 streams drawn anew. What differs, and
why:

- the paper does not say how the error rate forgets. Accumulated it gives delays like the table's (1,400 to
  3,900); faded with α = .999, as the input `error_rate` is, a third of that (290 to 1,560), for it moves at
  once;
- with faded errors there are some false alarms at every α, since a faded error keeps moving; fewest for α
  near 1;
- the ordering is a property of the paper's form, whose sum drifts to -δ/(1-α) below a minimum that never
  forgets. The clipped form (α = 1 gives the same) forgets evidence instead, and is slower, by less than 4
  %.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec, PageHinkleySpec
from tests.golden.sea import DRIFTS, PER_CONCEPT, naive_bayes_losses

pytestmark = pytest.mark.long

REMAINDERS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 0.0)
PRINTED = np.array([[1045, 654, 856], [1609, 2129, 1357], [2039, 2464, 1609], [2089, 2507, 1637],
                    [2094, 2511, 2511], [2095, 2511, 1641]])  # fmt: skip
STREAMS = 10


def spec_of(remainder, form):
    return PageHinkleySpec(
        f"{form} {remainder}",
        tolerance=1e-3,
        threshold=2.5,
        dependence="ignored",
        alpha=1.0 - remainder,
        form=form,
        input="error_rate",
    )


SPECS = tuple(spec_of(remainder, form) for form in ("paper", "clipped") for remainder in REMAINDERS)


@cache
def alarms():
    """Outcomes alarmed by each detector on each stream."""
    table = ModelTable(
        MonitorsSpec((), SPECS, (), max_models=STREAMS, max_classes=2, opponents=(), shadow_max_classes=0)
    )
    found = [[[] for _ in range(STREAMS)] for _ in SPECS]
    for seed in range(STREAMS):
        loss = naive_bayes_losses(seed).astype(np.int32)
        rows = np.full(len(loss), table.add_model(), np.int32)
        for alarm in table.fold(rows, np.zeros_like(loss), loss):
            found[alarm.detector][seed].append(alarm.outcome)
    return found


def delays(found):
    """Mean over streams of the outcomes from each drift to the first alarm after it."""
    waits = [[min(a for a in stream if a > drift) - drift for drift in DRIFTS] for stream in found]
    assert np.max(waits) <= PER_CONCEPT
    return np.mean(waits, axis=0)


def paper_form():
    return np.array([delays(found) for found in alarms()[: len(REMAINDERS)]])


def test_every_drift_is_seen_with_a_delay_of_the_papers_order_of_magnitude() -> None:
    """Each mean delay is within a factor of 6 of the printed one: hundreds to thousands, not tens."""
    ratio = paper_form() / PRINTED
    assert (ratio > 1 / 6).all()
    assert (ratio < 6).all()


def test_the_delay_grows_with_alpha_up_to_no_forgetting_at_all() -> None:
    means = paper_form().mean(axis=1)
    assert (np.diff(means) >= 0).all()
    assert means[0] < 0.9 * means[-1]
    assert means[-2] == pytest.approx(means[-1], rel=0.002)  # 1e-8 and 0, 2094 and 2095 in the table


def test_strong_forgetting_in_the_papers_form_brings_false_alarms() -> None:
    """Counted from outcome 5,000, when naive Bayes has learned, to the first drift."""
    false = [sum(5_000 < a <= PER_CONCEPT for stream in found for a in stream) for found in alarms()]
    assert false[0] > 2 * false[len(REMAINDERS) - 1]
    assert false[0] >= STREAMS


def test_clipped_it_forgets_evidence_and_is_slower_by_little() -> None:
    clipped = np.array([delays(found) for found in alarms()[len(REMAINDERS) :]])
    np.testing.assert_allclose(clipped[-1], paper_form()[-1])
    assert (np.diff(clipped.mean(axis=1)) <= 0).all()
    assert clipped[0].mean() == pytest.approx(clipped[-1].mean(), rel=0.04)


def test_on_the_loss_itself_the_papers_parameters_alarm_all_the_time() -> None:
    """About 160 alarms in the 15,000 outcomes before the first drift: the table cannot monitor that."""
    on_data_loss = PageHinkleySpec(tolerance=1e-3, threshold=2.5, alpha=1.0, dependence="ignored")
    table = ModelTable(
        MonitorsSpec((), (on_data_loss,), (), max_models=1, max_classes=2, opponents=(), shadow_max_classes=0)
    )
    loss = naive_bayes_losses(0)[:PER_CONCEPT].astype(np.int32)
    found = table.fold(np.full(len(loss), table.add_model(), np.int32), np.zeros_like(loss), loss)
    assert 120 <= len(found) <= 220


def alarms_of_the_definition(loss, remainder, form, fading):
    """Outcomes alarmed by the definition on an error rate S/B, faded by `fading` and never reset."""
    alpha, found = 1.0 - remainder, []
    s = b = m = total = 0.0
    least, n = np.inf, 0
    for outcome, x in enumerate(loss.tolist(), 1):
        s, b = fading * s + x, fading * b + 1.0
        n += 1
        total += s / b
        m = alpha * m + s / b - total / n - 1e-3
        m = max(0.0, m) if form == "clipped" else m
        least = 0.0 if form == "clipped" else min(least, m)
        if m - least > 2.5 and n >= 30:
            found.append(outcome)
            m, total, least, n = 0.0, 0.0, np.inf, 0
    return found


@pytest.mark.parametrize("form", ["paper", "clipped"])
@pytest.mark.parametrize("remainder", [1e-4, 1e-6, 0.0])
def test_the_kernel_alarms_on_the_error_rate_where_the_definition_does(remainder, form) -> None:
    index = next(i for i, spec in enumerate(SPECS) if spec.name == f"{form} {remainder}")
    assert alarms()[index][0] == alarms_of_the_definition(naive_bayes_losses(0), remainder, form, 0.999)


def test_on_the_accumulated_error_the_definition_has_the_papers_delays() -> None:
    """Between 1/2.5 and 5 times the printed ones, on three streams; ordered by α at the first drift."""
    found = {
        remainder: [
            alarms_of_the_definition(naive_bayes_losses(seed), remainder, "paper", 1.0) for seed in range(3)
        ]
        for remainder in (1e-4, 1e-5, 0.0)
    }
    for remainder, waits in ((r, delays(streams)) for r, streams in found.items()):
        ratio = waits / PRINTED[REMAINDERS.index(remainder)]
        assert (ratio > 1 / 2.5).all(), remainder
        assert (ratio < 5).all(), remainder
    first = [delays(streams)[0] for streams in found.values()]
    assert first == sorted(first)
