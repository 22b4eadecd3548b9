"""Detectors of other libraries: one call, one answer for each run, however many runs there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from river.drift import ADWIN

from streamwatch.papers.commands import app
from streamwatch.papers.detection import candidates
from streamwatch.papers.detection import peers as moa
from streamwatch.papers.detection import peers as river
from streamwatch.papers.detection.streams import CALM, GROUPS
from tests.commands import CliRunner

MOA_JARS = Path(__file__).parents[2] / ".cache" / "moa" / "libs"
"""Where `tests/bench/kernel_vs_moa.py` puts MOA."""


def losses(runs):
    rng = np.random.default_rng(5)
    return np.stack([np.concatenate([rng.random(600) < 0.1, rng.random(600) < 0.6]) for _ in range(runs)])


def test_a_run_of_rivers_is_one_of_a_detector_that_saw_nothing_else():
    given = losses(3)
    (adwin,) = [each for each in river.river_detectors() if each.name == "ADWIN"]
    found = adwin.alarms(given)
    for run, alarms in zip(given, found, strict=True):
        detector, expected = ADWIN(), []
        for at, loss in enumerate(run, 1):
            detector.update(int(loss))
            if detector.drift_detected:
                expected.append(at)
        assert alarms == expected
        assert alarms


@pytest.mark.slow
def test_the_daemons_detectors_alarm_as_rivers_where_their_rules_are_the_same():
    """HDDM_A and ADWIN of both have one source; of ADWIN the first alarm, as a drift is one alarm here."""
    given = losses(4)
    names = [spec.name for spec in candidates.published()]
    own = dict(zip(names, candidates.own_alarms(candidates.published(), given), strict=True))
    theirs = {each.name: each.alarms(given) for each in river.river_detectors()}
    assert own["hddm_a"] == theirs["HDDMA"]
    assert [run[:1] for run in own["adwin"]] == [run[:1] for run in theirs["ADWIN"]]


@pytest.mark.slow
@pytest.mark.skipif(not MOA_JARS.is_dir(), reason="make bench puts MOA there")
def test_moas_detectors_begin_anew_with_every_run():
    given = losses(3)
    for each in moa.moa_detectors(MOA_JARS):
        together = each.alarms(given)
        assert together[2:] == each.alarms(given[2:]), each.name
        assert len(together) == 3


def test_a_folder_without_moa_is_refused(tmp_path):
    refused = CliRunner().invoke(app, ["detectors", "--reduced", "--moa", str(tmp_path)])
    assert refused.exit_code == 2
    assert "expected a folder with moa-*.jar" in refused.output


def test_streams_have_the_error_that_they_say_before_and_after_their_changes():
    for group in GROUPS[:3]:
        for stream in group.streams:
            drawn = np.stack([stream.draw(np.random.default_rng(seed)) for seed in range(20)])
            assert drawn.shape == (20, stream.outcomes)
            low, high = stream.name.replace("between ", "").replace("and", "to").split(" to ")[:2]
            before, after = float(low.split()[-1]), float(high.split()[0].rstrip(","))
            assert drawn[:, :CALM].mean() == pytest.approx(before, abs=0.02), stream.name
            last = drawn[:, -3_000:] if "over" in stream.name else drawn[:, CALM + 100 : CALM + 4_000]
            assert last.mean() == pytest.approx(after, abs=0.02), stream.name


def test_a_stale_model_errs_as_the_optimum_before_the_stream_moves():
    """Optimal errors: Cervantes et al., Table 3, are of a whole lap; NSCX begins with one class."""
    for stream in GROUPS[3].streams:
        drawn = np.stack([stream.draw(np.random.default_rng(seed)) for seed in range(3)])
        first, change = drawn[:, :CALM].mean(), stream.changes[0]
        assert change.at == CALM
        assert first < 0.08, stream.name
        assert drawn[:, CALM:].mean() > first, stream.name
