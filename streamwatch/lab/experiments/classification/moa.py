"""MOA's classifiers, the software of the paper, by Java; where a folder with MOA's jar files is given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from streamwatch.lab.experiments.classification.experts import Classes
from streamwatch.lab.experiments.moa_runs import lines_of, refuse_without
from streamwatch.lab.experiments.result import Floats

MOA_CLASSIFIERS: Final = Path(__file__).parent / "MoaClassifiers.java"
"""What reads instances and writes what MOA's classifiers answer."""
COMMANDS: Final[dict[str, str]] = {
    "NB": "bayes.NaiveBayes",
    "SGD": "functions.SGD -r 0.01",
    "DWM": "meta.DynamicWeightedMajority",
    "OZAB": "meta.OzaBagAdwin",
    "NN100": "lazy.kNN -k 1 -w 100",
}
"""By the paper's name; at MOA's defaults but for what stands here. Longer windows take it too long."""


def answers_of(
    jars: Path, streams: Sequence[tuple[Floats, Classes]], names: Sequence[str] = tuple(COMMANDS)
) -> dict[str, list[Classes]]:
    """Answers of MOA's classifiers, each instance answered before it is learned.

    Parameters
    ----------
    jars
        Folder with MOA's jar files.
    streams
        Attributes (n, d) and classes 0 and 1 (n,) of each; classifiers begin anew with each.
    names
        Of `COMMANDS`.

    Returns
    -------
    By classifier, (n,) for each stream.

    Raises
    ------
    MoaError
        If there is no MOA in the folder, or it cannot be run.
    """
    refuse_without(jars)
    dimensions = streams[0][0].shape[1]
    told = "\n\n".join("\n".join(_lines(x, true_class)) for x, true_class in streams)
    expected = sum(len(x) for x, _ in streams)
    commands = [COMMANDS[name] for name in names]
    lines = lines_of(jars, MOA_CLASSIFIERS, commands, f"{dimensions} 2\n{told}\n".encode(), expected)
    found = np.array([line.split(b";") for line in lines]).astype(np.int64)
    ends = np.cumsum([len(x) for x, _ in streams])[:-1]
    return {name: np.split(found[:, index], ends) for index, name in enumerate(names)}


def _lines(x: Floats, true_class: Classes) -> list[str]:
    return [
        f"{truth} {' '.join(map(repr, attributes))}"
        for attributes, truth in zip(x.tolist(), true_class.tolist(), strict=True)
    ]
