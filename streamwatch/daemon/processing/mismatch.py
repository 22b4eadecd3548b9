"""Internal events of what is silently wrong with models."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.join.mismatch import Mismatch
from streamwatch.telemetry import ClassesDisjoint, NothingJoins, ScoresAsClasses, Telemetry


class MismatchReporter:
    """Emits an internal event when something is found wrong with a model; again only after it was right."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._told: set[tuple[str, str]] = set()

    def tell(self, found: Sequence[Mismatch]) -> None:
        """Emit what is new among everything that is wrong now."""
        now: set[tuple[str, str]] = set()
        for each in found:
            if each.disjoint is not None:
                now.add(("classes", each.model))
                if ("classes", each.model) not in self._told:
                    predicted_class, true = each.disjoint
                    self._telemetry.emit(ClassesDisjoint(each.model, tuple(predicted_class), tuple(true)))
            if each.scores is not None:
                now.add(("scores", each.model))
                if ("scores", each.model) not in self._told:
                    self._telemetry.emit(ScoresAsClasses(each.model, tuple(each.scores)))
            if each.predictions is not None:
                now.add(("joins", each.model))
                if ("joins", each.model) not in self._told:
                    self._telemetry.emit(NothingJoins(each.model, each.predictions))
        self._told = now
