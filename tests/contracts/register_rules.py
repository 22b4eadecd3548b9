"""What every kind of register owes the rest of the program, as a list of what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace

import numpy as np

from streamwatch.core.estimators.registers import RegisterKind
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.sections import document_of, spec_of
from streamwatch.core.records.events import Outcome
from tests.layouts import TINY

MODELS = ("m", "n")


def faults(kind: RegisterKind, outcomes: Sequence[Outcome] | None = None) -> list[str]:
    """Tell what is wrong with a kind; it must stand in `registers.KINDS`."""
    given = stream() if outcomes is None else outcomes
    return [*_described(kind), *_invariant(kind, given), *_reported(kind, given), *_refused(kind, given)]


def stream(length: int = 600) -> list[Outcome]:
    """Outcomes of two models with three classes and scores over days, with a change in their midst."""
    rng = np.random.default_rng(5)
    found: list[Outcome] = []
    for i in range(length):
        wrong = rng.random() < (0.1 if i < length // 2 else 0.5)
        truth = "abc"[int(rng.integers(3))]
        answer = "abc"[("abc".index(truth) + 1) % 3] if wrong else truth
        first, second = sorted(rng.dirichlet((1.0, 1.0, 1.0))[:2].tolist())
        scores = {"a": first, "b": second, "c": max(0.0, 1.0 - first - second)} if i % 3 else None
        found.append(
            Outcome(
                MODELS[int(rng.integers(2))],
                truth,
                answer,
                event_ms=1_700_000_000_000 + i * 3_600_000,
                delay_ms=int(rng.integers(10 * 86_400_000)),
                assumed=i % 17 == 0,
                scores=scores,
                segments={"country": "DEFRIT"[i % 5 : i % 5 + 2]} if i % 11 else None,
                last_class="abc"[i % 3] if i % 4 == 0 else None,
                label_at_prediction="abc"[i % 3] if i > 10 else None,
                made=i + 1,
                resolved_ms=1_700_000_000_000 + i * 3_600_000,
                waited_ms=int(rng.integers(10)) * 86_400_000,
            )
        )
    return found


def _set(kind: RegisterKind) -> EstimatorSet:
    return EstimatorSet(replace(TINY, max_models=4, registers=(kind.spec(),)))


def _snapshots(estimators: EstimatorSet) -> list[bytes]:
    return [estimators.snapshot(model) for model in MODELS]


def _described(kind: RegisterKind) -> Iterator[str]:
    spec = kind.spec()
    if not is_dataclass(spec) or not kind.spec.__dataclass_params__.frozen:
        yield "its specification is no frozen dataclass"
    for metric in kind.metrics:
        if "model" not in metric.labels or list(metric.labels) != sorted(metric.labels):
            yield f"{metric.name}: labels must be sorted and have model, got {metric.labels}"
        if not metric.help.strip():
            yield f"{metric.name}: no help"
    wanted = replace(TINY, registers=(spec,))
    if spec_of(document_of(wanted)) != (wanted, ()):
        yield f"its parameters do not survive a state: {[field.name for field in fields(spec)]}"


def _invariant(kind: RegisterKind, outcomes: Sequence[Outcome]) -> Iterator[str]:
    whole, cut, by_model, resumed, again = (_set(kind) for _ in range(5))
    whole.fold(outcomes)
    expected = _snapshots(whole)
    for start in range(0, len(outcomes), 7):
        cut.fold(outcomes[start : start + 7])
    if _snapshots(cut) != expected:
        yield "its state depends on how the stream is cut"
    for model in MODELS:
        by_model.fold([outcome for outcome in outcomes if outcome.model == model])
    if _snapshots(by_model) != expected:
        yield "what it keeps of a model depends on other models"
    half = len(outcomes) // 2
    resumed.fold(outcomes[:half])
    for model in MODELS:
        again.restore(resumed.snapshot(model))
    again.fold(outcomes[half:])
    if _snapshots(again) != expected:
        yield "its state differs after it was written and read"
    if again.families() != whole.families():
        yield "its series differ after its state was written and read"
    for model in MODELS:
        again.retire(model)
    again.fold(outcomes)
    if _snapshots(again) != expected:
        yield "it remembers models that have retired"


def _reported(kind: RegisterKind, outcomes: Sequence[Outcome]) -> Iterator[str]:
    estimators = _set(kind)
    estimators.fold(outcomes)
    families = {family.name: family for family in estimators.families()}
    for metric in kind.metrics:
        family = families.get(metric.name)
        if family is None:
            yield f"{metric.name}: not exported"
            continue
        for key, value in family.samples:
            if len(key) != len(family.labels):
                yield f"{metric.name}: {len(key)} label values for {family.labels}"
            if value != value:  # noqa: PLR0124 - NaN is not itself
                yield f"{metric.name}: an undefined value has a sample"
    for model, details in estimators.details().items():
        json.dumps(details, allow_nan=False)
        if model not in MODELS:
            yield f"details of {model}"


def _refused(kind: RegisterKind, outcomes: Sequence[Outcome]) -> Iterator[str]:
    register = kind.build(kind.spec(), 1)
    register.clear(0)
    try:
        register.restore(0, b"\xc1 no state")
    except ValueError:
        pass
    else:
        yield "it takes any bytes for its state"
    estimators = _set(kind)
    estimators.fold(outcomes)
    plain = EstimatorSet(replace(TINY, max_models=4))
    plain.restore(estimators.snapshot("m"))  # a state with a register that is no longer asked for
    plain.fold(outcomes[:1])
    estimators.restore(plain.snapshot("m"))  # and one without: the register begins empty
