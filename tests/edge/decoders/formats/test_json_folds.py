"""Folds of a model in records of JSON."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.core.records.events import Invalid, Prediction, WrongFold, fold_of, model_of
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import id_keys
from streamwatch.folds import Scheme, roles
from tests.edge.decoders.formats.json_records import FLAT, LABEL, decode, reason
from tests.edge.decoders.records import of

BOOTSTRAP = Scheme("bootstrap", 10)


@pytest.mark.parametrize("fold", [0, 3, "3", -1, 0.5, True, []])
def test_a_prediction_of_one_fold_is_refused_without_a_scheme(fold: Any):
    assert reason(of(FLAT | {"fold": fold})) == "fold_without_scheme"
    assert reason(of({"id": "a", "part": fold} | FLAT), mapping=TopicMapping(fold="value.part")) == (
        "fold_without_scheme"
    )


@pytest.mark.parametrize("fold", [0, 9, "9", 3.0])
def test_a_fold_is_part_of_the_name_under_which_a_model_is_monitored(fold: Any):
    decoder = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping(), folds=BOOTSTRAP))
    event = decoder.decode(of(FLAT | {"fold": fold}), 0)
    assert isinstance(event, Prediction)
    assert (model_of(event.model), fold_of(event.model)) == (FLAT["model"], int(float(fold)))


@pytest.mark.parametrize("fold", [10, -1, "03", "", "x", 0.5, True, [], {}, "1" * 5_000, "٣", 1e30])
def test_a_fold_that_the_scheme_does_not_have_is_invalid(fold: Any):
    decoder = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping(), folds=BOOTSTRAP))
    event = decoder.decode(of(FLAT | {"fold": fold}), 0)
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_fold"


@pytest.mark.parametrize("validation", ["cross-validation", "split-validation", "bootstrap"])
@pytest.mark.parametrize("digest", [False, True])
def test_a_fold_is_evaluated_where_it_tests_the_id_as_trainers_write_it(validation: Any, *, digest: bool):
    scheme = Scheme(validation, 5, prequential=False)
    keys = id_keys("churn", digest=digest)
    decoder = JsonDecoder(DecoderSpec("t", "prediction", TopicMapping(), keys, folds=scheme))
    for number in range(60):
        for fold in range(5):
            record = of({"id": number, "model": "m", "prediction": "x", "fold": fold})
            tests = roles(str(number), fold, scheme).tests
            assert type(decoder.decode(record, 0)) is (Prediction if tests else WrongFold)
            (at_once,) = decoder.decode_all([record], [7])
            assert at_once == decoder.decode(record, 7)


def test_a_fold_is_no_matter_where_it_is_null_not_looked_at_or_on_a_label():
    assert decode(of(FLAT | {"fold": None})) == decode(of(FLAT))
    assert decode(of(FLAT | {"fold": 3}), mapping=TopicMapping(fold=None)) == decode(of(FLAT))
    assert decode(of(LABEL | {"fold": 3}), "label") == decode(of(LABEL), "label")
