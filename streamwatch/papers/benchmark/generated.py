"""The paper's synthetic streams: losses of a Hoeffding tree that keeps learning on MOA's generators.

A generator changes its function every 10,000 instances, at once or over 2,000 further ones, to one drawn from
the others. A Hoeffding tree at CapyMOA's defaults predicts each instance before it learns it; detectors begin
after 1,000 instances. `published` builds the streams of the paper's experiments, in which the last change is
from a function to itself; `drawn` builds others from seeds, in which every change is a real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from streamwatch.papers.benchmark.metrics import Rule, Run, World
from streamwatch.papers.moa_runs import lines_of, refuse_without

PROGRAM: Final = Path(__file__).parent / "MoaStreams.java"
"""Program that runs a learner on MOA's streams."""
TREE: Final = "trees.HoeffdingTree -c 0.001 -z -p"
"""CapyMOA's defaults: a split confidence of 1e-3 (MOA's is 1e-7), bounded memory, no prepruning."""
EVERY: Final = 10_000
WIDTH: Final = 2_000
"""Instances that a gradual change takes."""
MAX_DELAY: Final = 1_000
WARM: Final = 1_000
"""Instances before detectors begin."""
PUBLISHED_DRIFTS: Final = 30
PUBLISHED_SEED: Final = 123


@dataclass(frozen=True, slots=True)
class Generator:
    """Generator of MOA with several functions."""

    name: str
    command: str
    functions: int


GENERATORS: Final = (
    Generator("Agrawal", "generators.AgrawalGenerator", 10),
    Generator("SEA", "generators.SEAGenerator", 4),
    Generator("STAGGER", "generators.STAGGERGenerator", 3),
)


def functions_of(generator: Generator, drifts: int, rng: np.random.RandomState) -> list[int]:
    """Draw the function of each concept: the first is 1, each other one differs from the previous one."""
    found = [1]
    for _ in range(drifts):
        others = [function for function in range(1, generator.functions + 1) if function != found[-1]]
        found.append(int(rng.choice(others)))
    return found


def command(generator: Generator, functions: Sequence[int], width: int, seed: int) -> str:
    """Build MOA's command line for a stream of these concepts.

    MOA centres a gradual change at the position that the paper counts as its beginning.
    """
    stream = _concept(generator, functions[0], seed)
    for number, function in enumerate(functions[1:]):
        position = EVERY + number * (EVERY + width)
        then = _concept(generator, function, seed)
        stream = f"ConceptDriftStream -s ({stream}) -d ({then}) -p {position} -w {width} -r {seed}"
    return stream


def _concept(generator: Generator, function: int, seed: int) -> str:
    return f"{generator.command} -f {function} -i {seed}"


def drifts_of(number: int, width: int) -> tuple[tuple[int, int], ...]:
    """Return the instances at which each change begins and is complete, as counted in the paper."""
    starts = [EVERY + k * (EVERY + width) for k in range(number)]
    return tuple((start, start + width) for start in starts)


def published(jars: Path, generator: Generator, width: int) -> Run:
    """Run the tree on the paper's own stream.

    Raises
    ------
    MoaError
        If there is no MOA in the folder, or it cannot be run.
    """
    functions = functions_of(
        generator,
        PUBLISHED_DRIFTS - 1,
        np.random.RandomState(PUBLISHED_SEED),
    )
    instances = PUBLISHED_DRIFTS * (EVERY + width + 1) + 1
    stream = command(generator, [*functions, functions[-1]], width, 1)
    return _runs(jars, [stream], instances, PUBLISHED_DRIFTS, width)[0]


def drawn(jars: Path, generator: Generator, width: int, seeds: Sequence[int], drifts: int) -> World:
    """Run the tree on one stream with `drifts` changes from each seed (at least 1).

    Raises
    ------
    MoaError
        If there is no MOA in the folder, or it cannot be run.
    """
    streams: list[str] = []
    for seed in seeds:
        functions = functions_of(generator, drifts, np.random.RandomState(seed))
        streams.append(command(generator, functions, width, seed))
    instances = drifts * (EVERY + width) + EVERY
    name = f"{generator.name}, {'gradual' if width else 'abrupt'}"
    return World(name, Rule(MAX_DELAY), tuple(_runs(jars, streams, instances, drifts, width)))


def _runs(jars: Path, streams: Sequence[str], instances: int, drifts: int, width: int) -> list[Run]:
    refuse_without(jars)
    lines = lines_of(jars, PROGRAM, [TREE, str(instances), *streams], b"", len(streams))
    positions = np.arange(WARM + 1, instances)
    return [
        Run(
            (np.frombuffer(line, np.uint8) == ord("1"))[WARM + 1 :],
            positions,
            drifts_of(drifts, width),
            instances,
        )
        for line in lines
    ]
