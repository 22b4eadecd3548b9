"""Drifts that the paper induces in recorded data: four kinds, abrupt and gradual.

Instances are shuffled, so that there is no other drift. Instances are changed from an onset on, which is
uniform between half and four fifths of the stream; a gradual drift changes each instance with a probability
that rises linearly from 0 to 1 over its width:

- *class prior*: of one class, three of four instances are left out;
- *label swap*: instances of one class are labelled as another one;
- *feature permutation*: attributes are permuted, for all instances in the same way;
- *feature filtering*: instances whose one attribute is above its median are left out.

A Hoeffding tree (`generated.TREE`) predicts every instance before it learns it, and keeps learning after the
drift; detectors begin after a quarter of the stream. Every drift, even a gradual one, counts as complete at
its onset, so an alarm is true within `max_delay` of the onset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers.benchmark.generated import TREE
from streamwatch.papers.benchmark.metrics import Rule, Run, World
from streamwatch.papers.classification.peers import MOA_CLASSIFIERS
from streamwatch.papers.moa_runs import lines_of, refuse_without
from streamwatch.papers.result import Floats

Kind: TypeAlias = Literal["class prior", "label swap", "feature permutation", "feature filtering"]
KINDS: Final[tuple[Kind, ...]] = ("class prior", "label swap", "feature permutation", "feature filtering")
REGION: Final = (0.5, 0.8)
"""Part of the stream in which the onset lies."""
LEFT_OUT: Final = 0.75
"""Probability with which an instance of the class is left out."""
LEARNING: Final = 0.25
"""Part of the stream before detectors begin."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Data set of the paper."""

    name: str
    instances: int
    """Number of instances used in the paper, at most 100,000."""
    max_delay: int
    """Instances after a drift within which an alarm is true; also the width of gradual drifts."""


DATA_SETS: Final = (
    DataSet("Asfault", 8_563, 500),
    DataSet("Covtype", 100_000, 2_500),
    DataSet("Electricity", 45_312, 2_500),
    DataSet("GasSensorArray", 13_910, 1_500),
    DataSet("NOAA", 18_159, 1_500),
    DataSet("Posture", 100_000, 2_500),
    DataSet("Rialto", 82_250, 2_500),
)


class DataError(ValueError):
    """Data set that cannot be read; the message has its file and the reason."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Instances of a data set."""

    of: DataSet
    x: Floats
    """Attributes, (n, d)."""
    true_class: NDArray[np.int64]
    """Classes from 0, (n,)."""


def read(folder: Path) -> tuple[list[Recorded], list[str]]:
    """Read the paper's data sets from a folder; return them, and the names of those that are absent.

    Each is NAME.csv without a header: numbers, the class last.

    Raises
    ------
    DataError
        If the folder has none of them, or a file is not of this form.
    """
    found: list[Recorded] = []
    for of in DATA_SETS:
        path = folder / f"{of.name}.csv"
        if not path.is_file():
            continue
        try:
            rows = np.loadtxt(path, delimiter=",", ndmin=2, max_rows=of.instances)
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: expected rows of numbers, the class last: {error}") from error
        classes = np.unique(rows[:, -1])
        if rows.shape[1] < 2 or len(classes) < 2:
            raise DataError(
                f"{path}: expected an attribute and two classes or more, got {rows.shape[1] - 1} attributes "
                f"and {len(classes)} classes"
            )
        found.append(Recorded(of, rows[:, :-1], np.searchsorted(classes, rows[:, -1])))
    if not found:
        names = ", ".join(f"{of.name}.csv" for of in DATA_SETS)
        raise DataError(f"expected some of {names} in {folder}")
    return found, [of.name for of in DATA_SETS if of.name not in {each.of.name for each in found}]


@dataclass(frozen=True, slots=True)
class Induced:
    """Stream with an induced drift; arrays have an entry for each instance that is kept, (m,)."""

    onset: int
    positions: NDArray[np.int64]
    """Number of each instance before others were left out."""
    rows: NDArray[np.int64]
    """Row of each instance in the data set."""
    true_class: NDArray[np.int64]
    permuted: NDArray[np.bool_]
    """Whether the instance's attributes are permuted."""
    permutation: NDArray[np.int64]
    """Permutation of the attributes, (d,)."""


def induce(recorded: Recorded, kind: Kind, width: int, rng: np.random.Generator) -> Induced:
    """Shuffle a data set and induce a drift from a random onset on; `width` 0: an abrupt one."""
    n, attributes = recorded.x.shape
    rows = rng.permutation(n)
    onset = int(n * rng.uniform(*REGION))
    at = np.arange(n)
    changed = at >= onset
    if width:
        changed &= rng.random(n) < (at - onset) / width
    truth = recorded.true_class[rows]
    label, other = rng.choice(int(recorded.true_class.max()) + 1, 2, replace=False)
    attribute = int(rng.integers(attributes))
    permutation = rng.permutation(attributes)
    left = np.ones(n, np.bool_)
    if kind == "class prior":
        left = ~(changed & (truth == label) & (rng.random(n) < LEFT_OUT))
    elif kind == "label swap":
        truth = np.where(changed & (truth == label), other, truth)
    elif kind == "feature filtering":
        values = recorded.x[:, attribute]
        left = ~(changed & (values[rows] > np.median(values)))
    permuted = changed & (kind == "feature permutation")
    return Induced(onset, at[left], rows[left], truth[left], permuted[left], permutation)


def drawn(
    jars: Path, recorded: Recorded, kind: Kind, *, gradual: bool, rngs: Sequence[np.random.Generator]
) -> World:
    """Run the tree on one stream with a drift of this kind from each generator.

    Raises
    ------
    MoaError
        If there is no MOA in the folder, or it cannot be run.
    """
    refuse_without(jars)
    width = recorded.of.max_delay if gradual else 0
    streams = [induce(recorded, kind, width, rng) for rng in rngs]
    cells = [[repr(value) for value in row] for row in recorded.x.tolist()]
    plain = [" ".join(row) for row in cells]
    classes = int(recorded.true_class.max()) + 1
    text = "\n\n".join("\n".join(_lines(stream, plain, cells)) for stream in streams)
    given = f"{recorded.x.shape[1]} {classes}\n{text}\n".encode()
    expected = sum(len(stream.positions) for stream in streams)
    answers = np.array(lines_of(jars, MOA_CLASSIFIERS, [TREE], given, expected)).astype(np.int64)
    runs: list[Run] = []
    n = len(recorded.x)
    ends = np.cumsum([len(stream.positions) for stream in streams])[:-1]
    for stream, predicted in zip(streams, np.split(answers, ends), strict=True):
        seen = stream.positions > int(LEARNING * n)
        wrong = (predicted != stream.true_class)[seen]
        runs.append(Run(wrong, stream.positions[seen], ((stream.onset, stream.onset),), n))
    name = f"{recorded.of.name}, {kind}, {'gradual' if gradual else 'abrupt'}"
    return World(name, Rule(recorded.of.max_delay), tuple(runs))


def _lines(stream: Induced, plain: list[str], cells: list[list[str]]) -> list[str]:
    order = stream.permutation.tolist()
    return [
        f"{truth} {' '.join(cells[row][k] for k in order) if permuted else plain[row]}"
        for row, truth, permuted in zip(
            stream.rows.tolist(), stream.true_class.tolist(), stream.permuted.tolist(), strict=True
        )
    ]
