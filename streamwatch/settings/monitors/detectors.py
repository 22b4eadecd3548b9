"""Detectors of some models only: the same ones with other parameters."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pydantic import ValidationError

from streamwatch.core.estimators.catalogue import DETECTORS
from streamwatch.core.specs import DetectorSpec, ModelDetectors
from streamwatch.settings.kinds import parameters_of

ByModel: TypeAlias = dict[str, dict[str, dict[str, bool | int | float | str]]]
"""Parameters by pattern of model, name of detector, and name of parameter."""


def model_detectors(detectors: Sequence[DetectorSpec], by_model: ByModel) -> tuple[ModelDetectors, ...]:
    """Detectors of the models of every pattern: those of all models but for the parameters given.

    Raises
    ------
    ValueError
        A name is of no detector or parameter, or a value is out of its range.
    """
    return tuple(
        ModelDetectors(pattern, tuple(_changed(pattern, detector, given) for detector in detectors))
        for pattern, given in by_model.items()
        if known(pattern, "detector", given, [detector.name for detector in detectors])
    )


def _changed(pattern: str, detector: DetectorSpec, given: Mapping[str, Mapping[str, Any]]) -> DetectorSpec:
    parameters = given.get(detector.name, {})
    entry = next(each for each in DETECTORS if each.spec is type(detector))
    known(f"{pattern}: {detector.name}", "parameter", parameters, [p.name for p in entry.parameters])
    try:
        values = parameters_of(entry).model_validate(parameters).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        said = first.get("ctx", {}).get("error") or f"{first['msg']}, got {first['input']!r}"
        raise ValueError(f"{pattern}: {detector.name}: {first['loc'][0]}: {said}") from None
    return replace(detector, **{name: values[name] for name in parameters})


def known(where: str, kind: str, given: Mapping[str, object], names: Sequence[str]) -> bool:
    """Return True; raise ValueError for a name that is not among these."""
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"
            raise ValueError(f"{where}: no {kind} is named {name!r}; {meant}")
    return True
