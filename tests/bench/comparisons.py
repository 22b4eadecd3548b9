"""Cost of one pair of outcomes in a comparison, beside the plain definition in Python, in one run.

    python -m tests.bench.comparisons

Default mechanisms (landmark, one that fades, one that slides) and the verdict. The streams differ in how
often one model is right and the other wrong, which is when the verdict has work to do. "With names" is the
whole way from outcomes, which looks up models and partners. "Join" is the resolving of an id's predictions,
with the pairing and without. "Join and estimators" are a champion and five challengers, from records in
columns to evaluated outcomes.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.comparisons.table import ComparisonTable
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Event, Label, Outcome, PairedAnswer, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import ComparisonSpec, JoinSpec, MonitorsSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.columns import in_columns
from tests.core.estimators.comparisons.plain_comparison import PlainComparison
from tests.core.join.join_stream import Stream, label, label_for_all, predict

PAIRS = 200_000
ROUNDS = 8
GOAL_NANOSECONDS = 60
SPEC = replace(MonitorsSpec(), comparisons=(ComparisonSpec("old", ("new*",)),), max_comparisons=1_000)


def errors(discordant: float, number: int) -> np.ndarray:
    """Bits of pairs of which a share is right in one model alone."""
    rng = np.random.default_rng(1)
    differ = rng.random(number) < discordant
    return np.where(differ, rng.integers(1, 3, number), 3 * (rng.random(number) < 0.1)).astype(np.uint8)


def kernel_nanoseconds(comparisons: int, discordant: float) -> float:
    """CPU time of a pair in the compiled loop, the least of some rounds."""
    table = ComparisonTable(SPEC)
    for _ in range(comparisons):
        table.add_row(balanced=False)
    bits = errors(discordant, PAIRS)
    leads = (bits & 1).astype(np.float64) - (bits >> 1)
    rows = np.random.default_rng(2).integers(0, comparisons, PAIRS)
    zeros = np.zeros(PAIRS, np.int64)
    least = np.inf
    for _ in range(ROUNDS):
        began = time.process_time()
        table.fold(rows, bits, leads, zeros, zeros)
        least = min(least, (time.process_time() - began) / PAIRS * 1e9)
    return least


def set_nanoseconds(discordant: float, number: int = 50_000) -> float:
    """CPU time of a pair from outcomes with names."""
    outcomes = [
        Outcome(
            "new", "a", "b" if bits & 2 else "a", 0, 0, pairs=(PairedAnswer("old", "b" if bits & 1 else "a"),)
        )
        for bits in errors(discordant, number).tolist()
    ]
    comparisons = ComparisonSet(SPEC)
    comparisons.fold(outcomes)
    began = time.process_time()
    comparisons.fold(outcomes)
    return (time.process_time() - began) / number * 1e9


def join_microseconds(challengers: int, *, everyone: bool, ids: int = 20) -> tuple[float, float]:
    """CPU time of an outcome in the join of one champion and so many challengers: compared, and not."""
    models = ["old", *(f"new-{number}" for number in range(challengers))]
    found: list[float] = []
    for compared in ((ComparisonSpec("old", ("new-*",)),), ()):
        least = np.inf
        for _ in range(ROUNDS):
            join = JoinSpec(max_models=2 * len(models), comparisons=compared)
            stream = Stream(join)
            stream.pipeline = Pipeline(join, stream.monitors, digest_bytes)
            stream.feed(*(predict("warm", "x", 0, model) for model in models), label_for_all("warm", "x", 0))
            stream.feed(*(predict(str(i), "x", 1, model) for i in range(ids) for model in models))
            if everyone:
                labels = [label_for_all(str(i), "x", 2) for i in range(ids)]
            else:
                labels = [label(str(i), "x", 2, model) for i in range(ids) for model in models]
            began = time.process_time()
            stream.feed(*labels)
            least = min(least, (time.process_time() - began) / (ids * len(models)) * 1e6)
        found.append(float(least))
    return found[0], found[1]


def whole_microseconds(messages: int = 60_000, rounds: int = 7, at_once: int = 4_000) -> tuple[float, float]:
    """CPU time of a message through join and estimators, with six models an id: compared, and not."""
    models = ["old", *(f"new-{number}" for number in range(5))]
    rng = np.random.default_rng(3)
    batches: list[list[Event]] = [[]]
    for number in range(messages // (len(models) + 1)):
        if len(batches[-1]) >= at_once:
            batches.append([])
        at = 1_700_000_000_000 + number
        right = rng.random(len(models)) < 0.9
        batches[-1] += [
            Prediction(f"id-{number}", model, "a" if hit else "b", at)
            for model, hit in zip(models, right.tolist(), strict=True)
        ]
        if number >= 1_000:
            batches[-1].append(Label(f"id-{number - 1_000}", "a", at, None))
    least = [np.inf, np.inf]
    for _ in range(rounds):
        for place, compared in enumerate((SPEC.comparisons, ())):
            spec = replace(SPEC, comparisons=compared)
            pipeline = Pipeline(JoinSpec(comparisons=compared), EstimatorSet(spec), digest_bytes)
            vocabulary = Vocabulary()
            records = [in_columns(batch, vocabulary, digests=False) for batch in batches]
            began = time.process_time()
            for part in records:
                for _step in pipeline.steps(part):
                    pass
            least[place] = min(least[place], (time.process_time() - began) / messages * 1e6)
    return float(least[0]), float(least[1])


def plain_nanoseconds(number: int = 300) -> float:
    """CPU time of a pair by the definition over the whole past, at the given length."""
    plain = PlainComparison()
    began = time.process_time()
    for bits in errors(0.1, number).tolist():
        plain.take("a", "b" if bits & 1 else "a", "b" if bits & 2 else "a", 0)
        plain.landmark()
        plain.faded(0.999)
        plain.sliding(1_000)
    return (time.process_time() - began) / number * 1e9


def main() -> None:
    """Print the table."""
    for comparisons in (1, 100, 1_000):
        for discordant in (0.02, 0.1, 0.3):
            found = kernel_nanoseconds(comparisons, discordant)
            said = "within" if found <= GOAL_NANOSECONDS else "ABOVE"
            print(
                f"{comparisons:>5} comparisons, {discordant:4.0%} discordant: {found:6.1f} ns a pair "
                f"({said} {GOAL_NANOSECONDS})"
            )
    print(f"with names, one comparison: {set_nanoseconds(0.1):.0f} ns a pair")
    for challengers in (1, 10, 100, 400):
        for everyone in (True, False):
            compared, alone = join_microseconds(challengers, everyone=everyone)
            told = "a label for all" if everyone else "labels by model"
            print(
                f"join, {challengers:>3} challengers, {told}: {compared:5.2f} µs an outcome, "
                f"{alone:5.2f} where nothing is compared"
            )
    compared, alone = whole_microseconds()
    print(
        f"join and estimators, six models an id: {compared:5.3f} µs a message, {alone:5.3f} where nothing is "
        f"compared: {compared / alone:.2f} times"
    )
    print(f"plain definition over 300 pairs: {plain_nanoseconds():,.0f} ns a pair")


if __name__ == "__main__":
    main()
