"""Which histories support a promise."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.history.tuning.history import CannotPromise, check_history, lasting_block


def drawn(n, p=0.2, seed=1):
    return (np.random.default_rng(seed).random(n) < p).astype(np.int8)


@pytest.mark.parametrize(
    ("losses", "promise", "why"),
    [
        pytest.param(drawn(999), 1e4, "has 999 outcomes; at least 1,000", id="short"),
        pytest.param(drawn(5_000, 0.002), 1e4, "errors; at least 50 are needed", id="few errors"),
        pytest.param(drawn(5_000, 0.998), 1e4, "hits; at least 50 are needed", id="few hits"),
        pytest.param(drawn(5_000), 600_000, "at most 500,000 can be", id="more than it knows"),
        pytest.param(drawn(5_000), 500, "promise at most one in 1,000", id="less than a promise"),
        pytest.param(
            np.repeat(drawn(100, 0.5), 50), 1e4, "independent stretches; at least 100", id="goes together"
        ),
        pytest.param(
            np.concatenate([drawn(8_000, 0.1), drawn(2_000, 0.2)]), 1e4, "the history changes", id="changes"
        ),
    ],
)
def test_what_a_history_does_not_support_is_refused_with_the_reason(losses, promise, why) -> None:
    with pytest.raises(CannotPromise, match=why):
        check_history(losses, promise)


def test_histories_without_a_change_are_hardly_ever_taken_for_changing() -> None:
    refused = 0
    for seed in range(200):
        try:
            check_history(drawn(5_000, seed=seed), 10_000)
        except CannotPromise:
            refused += 1
    assert refused <= 2


def test_a_history_is_resampled_in_the_blocks_it_asks_for() -> None:
    losses = drawn(5_000)
    assert check_history(losses, 10_000) == lasting_block(losses)
