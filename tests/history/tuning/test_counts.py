"""Histories from the past that a daemon keeps, and the pasts that none can be made of."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from streamwatch.core.estimators.past import NONE, PastView
from streamwatch.core.metrics.series import Report
from streamwatch.core.specs import DAY_MS
from streamwatch.edge.daemon_api import Address, DaemonUnreachable
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.history import PastExporter
from streamwatch.history.tuning.advice import Wanted, tuned_models
from streamwatch.history.tuning.history import (
    CannotPromise,
    Counts,
    History,
    Unfit,
    counts_of_daemon,
    histories_of,
    history_of,
)
from tests.history.tuning.promises import KINDS, cycle

HOUR = 3_600


def stretches(losses, a_stretch, *, in_folds=False):
    """Counts of an hour for each `a_stretch` losses."""
    parts = np.split(losses, range(a_stretch, len(losses), a_stretch))
    return Counts(
        np.arange(len(parts)) * HOUR,
        np.full(len(parts), HOUR),
        np.array([len(part) for part in parts]),
        np.array([int(part.sum()) for part in parts]),
        in_folds,
    )


def drawn(process, n, seed=1):
    draw = cycle(2_000, 0.02) if process == "slow" else KINDS[process][0]
    return draw(np.random.default_rng(seed), n).astype(np.int8)


def test_a_history_has_the_counts_of_every_stretch_in_their_time() -> None:
    counts = stretches(drawn("independent, error .2", 200_025), 100)
    history = history_of(counts, np.random.default_rng(1))
    hours = history.event_ms // (1_000 * HOUR)
    assert np.bincount(hours).tolist() == counts.outcomes.tolist()
    assert np.bincount(hours, history.losses).tolist() == counts.errors.tolist()
    assert (np.diff(history.event_ms) >= 0).all()
    assert history.outcomes_per_day == pytest.approx(2_400, rel=0.01)


def test_losses_are_in_no_order_within_a_stretch() -> None:
    """The error of the first tenth of the stretches is that of all: whatever goes first would show there."""
    counts = stretches(drawn("independent, error .2", 200_000), 100)
    losses = history_of(counts, np.random.default_rng(2)).losses.reshape(-1, 100)
    assert losses[:, :10].mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 20_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "refused"),
    [
        ("independent, error .2", (0.0, 0.02)),
        ("independent, error .02", (0.0, 0.3)),  # with 2,400 errors it can be ruled out in most only
        ("correlated .5, error .1", (1.0, 1.0)),
        ("regimes of 100", (1.0, 1.0)),
        ("cycle of 200, error .05 to .15", (1.0, 1.0)),
        ("slow", (0.9, 1.0)),
    ],
)
def test_losses_that_go_together_are_refused_and_independent_ones_hardly_ever(process, refused) -> None:
    found = histories_of(
        {str(seed): stretches(drawn(process, 120_000, seed), 130) for seed in range(40)}, seed=1
    )
    share = sum(isinstance(each, Unfit) for each in found.values()) / 40
    assert refused[0] <= share <= refused[1]


def test_the_refusal_says_how_much_counts_vary_and_what_to_do() -> None:
    (unfit,) = histories_of({"m": stretches(drawn("regimes of 100", 60_000), 100)}, seed=1).values()
    assert isinstance(unfit, Unfit)
    assert unfit.outcomes == 60_000
    shown = re.search(r"the counts vary ([\d.]+) times as those of independent ones do", unfit.why)
    assert shown is not None
    assert float(shown[1]) > 2.0
    assert unfit.why.endswith("tune from recorded outcomes")


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        pytest.param(stretches(np.zeros(0, np.int8), 10).between(5, 6), "nothing is kept", id="nothing"),
        pytest.param(stretches(drawn("regimes of 100", 90), 9, in_folds=True), "in folds", id="folds"),
        pytest.param(
            stretches(drawn("independent, error .2", 500), 500),
            "1 stretches of time with .* errors, too few to see",
            id="one stretch",
        ),
        pytest.param(
            stretches(drawn("independent, error .2", 2_000), 50), "perhaps .* may be possible", id="few"
        ),
    ],
)
def test_a_past_that_no_history_can_be_made_of_is_refused_with_the_reason(counts, why) -> None:
    with pytest.raises(CannotPromise, match=why):
        history_of(counts, np.random.default_rng(1))


def test_of_a_past_without_errors_the_history_is_refused_for_that() -> None:
    history = history_of(stretches(np.zeros(5_000, np.int8), 100), np.random.default_rng(1))
    (tuned,) = tuned_models({"m": history}, Wanted(["ewma"], DAY_MS, None, 1))
    assert tuned.refusals == ("the history has 0 errors; at least 50 are needed",)


def test_what_is_unfit_is_reported_beside_what_was_tuned() -> None:
    (tuned,) = tuned_models({"m": Unfit(7, 0.5, "it predicts in folds")}, Wanted(["ewma"], DAY_MS, None, 1))
    assert (tuned.outcomes, tuned.error, tuned.refusals) == (7, 0.5, ("it predicts in folds",))


def test_stretches_are_chosen_that_lie_wholly_between_two_times() -> None:
    counts = stretches(drawn("independent, error .2", 500), 100)
    chosen = counts.between(1_000 * HOUR, 1_000 * (4 * HOUR - 1))
    assert chosen.start_s.tolist() == [HOUR, 2 * HOUR]
    assert chosen.outcomes.tolist() == [100, 100]


@pytest.fixture
def daemon():
    """Serves the models `a/b` and `folded` as a daemon does: their URL, and the losses of `a/b` by hour."""
    rng = np.random.default_rng(3)
    hits = Counter[int]()
    minutes = np.zeros((700, 4), np.int64)
    for hour in range(700):
        hits[hour] = int((rng.random(1_000 + hour) >= 0.2).sum())
        minutes[hour] = (60 * hour, 1_000 + hour, hits[hour], 0)
    view = PastView(NONE, minutes)
    busy = PastView(NONE, np.array([[60, 300_000_001, 270_000_011, 0]]))
    pasts = {"a/b": (view,), "folded": (view, view), "busy": (busy,)}
    report = Report((), 1_000 * 800 * HOUR, {}, pasts=pasts, history_days=30)
    exporter = PastExporter()
    documents = {
        "/api/v1/models": json.dumps(
            {"models": {"a/b": {}, "busy": {}, "folded": {}, "retired": {}}}
        ).encode(),
        "/api/v1/models/a%2Fb/past": exporter.render(Asked(report, {"model": "a/b"})),
        "/api/v1/models/busy/past": exporter.render(Asked(report, {"model": "busy"})),
        "/api/v1/models/folded/past": exporter.render(Asked(report, {"model": "folded"})),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path in documents else 404)
            self.end_headers()
            self.wfile.write(documents.get(self.path, b""))

        def log_message(self, format, *args):  # noqa: A002  # the name it overrides
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", hits
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_running_daemon_shows_exact_counts_of_its_past(daemon) -> None:
    url, hits = daemon
    counts = counts_of_daemon(Address(url))
    assert sorted(counts) == ["a/b", "busy", "folded"]
    assert counts.pop("busy").errors.tolist() == [29_999_990], "more than a rounded accuracy could tell"
    assert counts["a/b"].outcomes.tolist() == [1_000 + hour for hour in range(700)]
    assert (counts["a/b"].outcomes - counts["a/b"].errors).tolist() == [hits[hour] for hour in range(700)]
    found = histories_of(counts, seed=1)
    assert isinstance(found["a/b"], History)
    assert isinstance(found["folded"], Unfit)


def test_a_daemon_that_is_none_is_named() -> None:
    with pytest.raises(DaemonUnreachable, match="expected a URL such as http"):
        counts_of_daemon(Address("ftp://x"))
