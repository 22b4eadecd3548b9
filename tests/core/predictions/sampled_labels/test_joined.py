"""Through the join, estimates from sampled labels are what they are prediction by prediction."""

from __future__ import annotations

import math

import pytest
from rich.console import Console

from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.sampled_labels.observe import OPPONENTS
from streamwatch.core.records.events import Label, Outcome, Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.history.replay.replay import ReplayResult
from streamwatch.history.replay.tables import print_result
from tests.core.join.join_stream import Stream
from tests.core.predictions.sampled_labels.plain_sampled import Plain
from tests.core.predictions.sampled_labels.test_sampled_labels import HORIZON_MS, KINDS, SPEC, a_stream

JOINED = JoinSpec(horizon_ms=HORIZON_MS, carried=("sampling",), prediction_registers=(SPEC,))


def as_records(name: str):
    """Events of the join, and the plain estimates of them, with the last label known at each prediction."""
    plain, events, known, last = Plain(HORIZON_MS, SPEC.delta), [], {}, None
    for id_, event in a_stream(KINDS[name], 5, 3_000):
        if isinstance(event, Prediction):
            events.append(event)
            plain.predict(event)
            known[id_] = last
        else:
            events.append(Label(id_, event.true_class, event.resolved_ms, "m"))
            fields = {each: getattr(event, each) for each in event.__struct_fields__}
            plain.label(id_, Outcome(**{**fields, "label_at_prediction": known[id_]}))
            last = event.true_class
    return events, plain


@pytest.mark.slow
@pytest.mark.parametrize("name", ["by score", "quick"])
def test_estimates_through_the_join_equal_their_definition(name):
    events, plain = as_records(name)
    stream = Stream(JOINED)
    for start in range(0, len(events), 700):
        stream.feed(*events[start : start + 700])
    details = stream.pipeline.predictions.details()
    found = details["m"]["sampled_labels"]
    expected = plain.estimate("loss")
    assert found["accuracy"]["value"] == pytest.approx(1.0 - expected.value, abs=1e-9)
    assert found["accuracy"]["lower"] == pytest.approx(1.0 - expected.upper, abs=1e-9)
    assert stream.value("sampled_accuracy_upper_ratio", "m") == pytest.approx(1.0 - expected.lower, abs=1e-9)
    for opponent in OPPONENTS:
        lead = plain.estimate(opponent)
        assert not math.isnan(lead.lower)
        assert found["leads"][opponent]["value"] == pytest.approx(lead.value, abs=1e-9)
        assert found["leads"][opponent]["upper"] == pytest.approx(lead.upper, abs=1e-9)
        assert stream.value("sampled_lead_lower", "m", opponent) == pytest.approx(lead.lower, abs=1e-9)
    assert stream.pipeline.predictions.unrepresentative() == ({"m"} if name == "by score" else set())
    console = Console(record=True, width=200)
    nothing = [Family("accuracy_ratio", "gauge", "", ("forgetting", "model"), [])]
    print_result(ReplayResult(("recording",), 1, families=nothing, details=details, seconds=1.0), console)
    accuracy = found["accuracy"]
    text = console.export_text()
    assert "labels weighted with the probability of being asked for" in text
    assert f"{accuracy['value']:.4f} ({accuracy['lower']:.4f} to {accuracy['upper']:.4f})" in text
