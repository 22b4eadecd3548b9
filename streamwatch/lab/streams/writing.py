"""A stream as lines that `streamwatch replay` reads: the optimal classifier is the model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from streamwatch.lab.streams.draws import Drawn, blocks
from streamwatch.lab.streams.gaussians import Mixture

LineLayout: TypeAlias = Literal["csv", "jsonl"]
MODEL = "optimal"
"""Name of the model whose predictions are written."""
STEP_MS = 1_000
"""Time from one instance to the next."""


def lines(
    mixture: Mixture, layout: LineLayout, outcomes: int | None, seed: int, *, start_ms: int = 0
) -> Iterator[str]:
    """Lines of a stream, each with its end of line; without end where `outcomes` is None.

    CSV has a header and the columns `id,timestamp,model,prediction,label,x1,…`. JSON lines are a prediction,
    with `scores` (class probabilities of the optimal classifier) and `x`, and then its label.
    """
    if layout == "csv":
        attributes = ",".join(f"x{i + 1}" for i in range(mixture.dimensions))
        yield f"id,timestamp,model,prediction,label,{attributes}\n"
    left = outcomes
    for block in blocks(mixture, seed):
        written = _csv(block, mixture, start_ms) if layout == "csv" else _json(block, mixture, start_ms)
        per_instance = 1 if layout == "csv" else 2
        yield from written if left is None else itertools.islice(written, left * per_instance)
        if left is not None:
            left -= len(block.x)
            if left <= 0:
                return


def _csv(block: Drawn, mixture: Mixture, start_ms: int) -> Iterator[str]:
    labels = mixture.labels
    columns = (block.instances, block.optimal_class, block.true_class, block.x)
    for instance, answer, truth, x in zip(*(column.tolist() for column in columns), strict=True):
        attributes = ",".join(f"{value:.6g}" for value in x)
        at_ms = start_ms + instance * STEP_MS
        yield f"{instance},{at_ms},{MODEL},{labels[answer]},{labels[truth]},{attributes}\n"


def _json(block: Drawn, mixture: Mixture, start_ms: int) -> Iterator[str]:
    labels, encode = mixture.labels, msgspec.json.Encoder().encode
    columns = (block.instances, block.optimal_class, block.true_class, block.posterior, block.x)
    for instance, answer, truth, shares, x in zip(*(column.tolist() for column in columns), strict=True):
        name, at_ms = str(instance), start_ms + instance * STEP_MS
        prediction = {
            "id": name,
            "timestamp": at_ms,
            "model": MODEL,
            "prediction": labels[answer],
            "scores": {label: round(share, 6) for label, share in zip(labels, shares, strict=True)},
            "x": [float(f"{value:.6g}") for value in x],
        }
        yield encode(prediction).decode() + "\n"
        yield encode({"id": name, "timestamp": at_ms, "label": labels[truth]}).decode() + "\n"
