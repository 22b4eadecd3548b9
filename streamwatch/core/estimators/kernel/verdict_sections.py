"""Sections of a model's snapshot that hold its verdicts: one for each opponent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from streamwatch.core.estimators.fingerprints import fingerprint
from streamwatch.core.estimators.kernel.layout import Layout
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT, VERSION
from streamwatch.core.estimators.verdicts.utility import COSTS
from streamwatch.core.specs import MonitorsSpec, UtilitySpec


def verdict_names(spec: MonitorsSpec, layout: Layout, utility: int) -> Iterator[str]:
    """Yield the section names of a model judged by the utility of this number, by opponent."""
    for judged in _judged(spec, layout, utility):
        yield fingerprint("verdict", judged, VERDICT, VERSION)


def verdict_sections(spec: MonitorsSpec, layout: Layout, model: Any) -> dict[str, bytes]:
    """Encode the verdicts in a model's record."""
    names = verdict_names(spec, layout, int(model["utility"]))
    return {name: model["pace"][j].tobytes() + model["verdicts"][j].tobytes() for j, name in enumerate(names)}


def restore_verdicts(spec: MonitorsSpec, layout: Layout, model: Any, sections: Mapping[str, bytes]) -> None:
    """Restore the verdicts whose sections are present."""
    for j, name in enumerate(verdict_names(spec, layout, int(model["utility"]))):
        if name in sections:
            model["pace"][j] = np.frombuffer(sections[name], PACE, 1)[0]
            model["verdicts"][j] = np.frombuffer(sections[name], VERDICT, 1, PACE.itemsize)[0]


def _judged(spec: MonitorsSpec, layout: Layout, utility: int) -> Iterator[object]:
    """Yield what the verdicts of a model judged by this utility depend on, by opponent."""
    by = list(layout.costs)[utility - COSTS] if utility >= COSTS else utility
    costs = (by.costs, by.other) if isinstance(by, UtilitySpec) else by
    for opponent in layout.opponents:
        yield opponent, costs, spec.verdict_outcomes, spec.confidence_delta
