"""Comparisons do not depend on cuts, go on bitwise from a snapshot, and are bounded."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.comparisons.set import ComparisonSet, without
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import (
    ComparisonSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
    UtilitySpec,
)
from tests.tiers import examples

SPEC = MonitorsSpec(
    forgetting=(LandmarkSpec(), FadingSpec(0.9), SlidingSpec(5), SlidingSpec(3)),
    comparisons=(ComparisonSpec("a", ("*",)), ComparisonSpec("b", ("c",))),
    verdict_outcomes=1_000,
)
COSTS = UtilitySpec("b", "costs", (("x", "y", 3.0), ("y", "x", 1.0)), other=0.0)
SPECS = {
    "accuracy": SPEC,
    "balanced and costs": replace(SPEC, utilities=(UtilitySpec("a", "balanced"), COSTS, UtilitySpec())),
}


@st.composite
def outcomes(draw):
    """Outcomes of three models, each with what some of the others answered."""
    classes = st.sampled_from("xyz")
    made = []
    for at in range(draw(st.integers(0, 40))):
        model = draw(st.sampled_from("abc"))
        partners = draw(st.lists(st.sampled_from([m for m in "abc" if m != model]), unique=True))
        pairs = tuple(PairedAnswer(partner, draw(classes)) for partner in partners)
        made.append(Outcome(model, draw(classes), draw(classes), at, 0, pairs=pairs or None))
    return made


def shown(comparisons):
    return [(family.name, list(family.samples)) for family in comparisons.families()]


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=examples(2))
@given(made=outcomes(), choose=st.data())
def test_neither_cuts_nor_restores_change_a_bit(name, made, choose):
    spec = SPECS[name]
    whole, cut = ComparisonSet(spec), ComparisonSet(spec)
    whole.fold(made)
    cuts = sorted(choose.draw(st.lists(st.integers(0, len(made)), max_size=4)))
    for start, end in zip([0, *cuts], [*cuts, len(made)], strict=True):
        cut.fold(made[start:end])
        snapshot = cut.snapshot()
        cut = ComparisonSet(spec)
        cut.restore(snapshot)
        assert cut.snapshot() == snapshot
    assert cut.snapshot() == whole.snapshot()
    assert shown(cut) == shown(whole)


def pair(challenger, champion, *, right):
    answer = "x" if right else "y"
    return Outcome(challenger, "x", answer, 0, 0, pairs=(PairedAnswer(champion, "x"),))


def counts(comparisons):
    families = {family.name: dict(family.samples) for family in comparisons.families()}
    return families["comparison_pairs_total"]


def test_pairs_of_models_beyond_the_limit_are_counted_until_a_row_is_free():
    comparisons = ComparisonSet(replace(SPEC, max_comparisons=2))
    comparisons.fold(pair(model, "a", right=True) for model in ("b", "c", "d", "d"))
    assert counts(comparisons) == {("b", "a"): 1, ("c", "a"): 1}
    assert comparisons.over_limit == 2
    comparisons.retire("c")
    comparisons.fold([pair("d", "a", right=True)])
    assert counts(comparisons) == {("b", "a"): 1, ("d", "a"): 1}
    assert comparisons.over_limit == 2


def test_a_model_that_retires_takes_its_comparisons_and_starts_anew_when_it_returns():
    comparisons, new = ComparisonSet(SPEC), ComparisonSet(SPEC)
    comparisons.fold([pair("b", "a", right=False)] * 9)
    comparisons.retire("a")
    assert comparisons.snapshot() == new.snapshot()
    for each in (comparisons, new):
        each.fold([pair("c", "b", right=False), pair("b", "a", right=True)])
    assert comparisons.snapshot() == new.snapshot()


def test_after_a_change_of_settings_only_what_changed_begins_anew():
    before = ComparisonSet(SPEC)
    before.fold([pair("b", "a", right=False)] * 20 + [pair("c", "b", right=True)])
    changed = replace(
        SPEC,
        forgetting=(LandmarkSpec(), FadingSpec(0.9), FadingSpec(0.5), SlidingSpec(3)),
        comparisons=(ComparisonSpec("a", ("b",)),),
        utilities=(UtilitySpec("*", "balanced"),),
    )
    after = ComparisonSet(changed)
    after.restore(before.snapshot())
    assert counts(after) == {("b", "a"): 20}
    was = {(f.name, key): value for f in before.families() for key, value in f.samples}
    now = {(f.name, key): value for f in after.families() for key, value in f.samples}
    for forgetting in ("landmark", "fading:0.9", "sliding:3"):
        for name in ("comparison_champion_right_alone", "comparison_effective_sample_size"):
            key = name, ("b", "a", forgetting)
            assert now[key] == was[key]
    assert ("comparison_mcnemar", ("b", "a", "fading:0.5")) not in now
    assert ("comparison_mcnemar", ("b", "a", "sliding:5")) not in now
    assert ("comparison_verdict", ("b", "a")) not in now  # judged by another utility: a new verdict
    after.fold([pair("b", "a", right=False)])
    assert counts(after) == {("b", "a"): 21}


def test_a_snapshot_of_another_shape_is_refused():
    with pytest.raises(msgspec.ValidationError):
        ComparisonSet(SPEC).restore(b"\x81\xa1a\x01")


def test_verdicts_of_another_version_begin_anew_and_all_else_goes_on():
    pairs = (PairedAnswer("c", "y"),)
    made = [Outcome("a", "x", "x" if t % 9 else "y", t, 0, pairs=pairs) for t in range(300)]
    table = ComparisonSet(SPEC)
    table.fold(made)
    document = msgspec.msgpack.decode(table.snapshot())
    named = {name for name, title in table.estimators().items() if title.startswith("verdict of")}
    for kept in document["comparisons"]:
        (name,) = kept["sections"].keys() & named
        kept["sections"]["verdict/of another version"] = kept["sections"].pop(name)[:-1]
    resumed = ComparisonSet(SPEC)
    resumed.restore(msgspec.msgpack.encode(document))
    assert without(resumed.snapshot(), named) == without(table.snapshot(), named)
    assert without(resumed.snapshot(), named) != resumed.snapshot()
    resumed.fold(made)
    (kept,) = msgspec.msgpack.decode(resumed.snapshot())["comparisons"]
    assert named & kept["sections"].keys()


@pytest.mark.parametrize("name", SPECS)
def test_a_section_of_another_length_is_refused(name):
    kept = ComparisonSet(SPECS[name])
    kept.fold([pair("c", "a", right=n % 2 == 0) for n in range(8)])
    snapshot = msgspec.msgpack.decode(kept.snapshot())
    ComparisonSet(SPECS[name]).restore(msgspec.msgpack.encode(snapshot))
    (comparison,) = snapshot["comparisons"]
    refused = 0
    for section, body in comparison["sections"].items():
        damaged = [b"", body[:-1], b"\x07"]
        if not section.startswith("fading"):
            parts = msgspec.msgpack.decode(body)
            shortened = ([*parts[:at], b"", *parts[at + 1 :]] for at, part in enumerate(parts) if part)
            damaged += map(msgspec.msgpack.encode, shortened)
        for each in damaged:
            changed = {**comparison, "sections": {**comparison["sections"], section: each}}
            with pytest.raises(ValueError, match=r"expected|Expected|truncated|Input data"):
                ComparisonSet(SPECS[name]).restore(
                    msgspec.msgpack.encode({**snapshot, "comparisons": [changed]})
                )
            refused += 1
    assert refused > 15
