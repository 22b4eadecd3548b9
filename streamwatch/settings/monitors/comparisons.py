"""`monitors.comparisons`: which models are compared with which."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import model_validator

from streamwatch.core.specs import ComparisonSpec
from streamwatch.settings.sections import Section


class ComparisonSection(Section):
    """Models to compare: a champion with its challengers, or pairs."""

    champion: str | None = None
    """Model that the others are compared with."""
    challengers: tuple[str, ...] = ()
    """Patterns of the challengers, such as fraud-*. The champion itself is left out."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Instead, pairs of models by name, with the champion first: `[[fraud-v3, fraud-v4]]`."""

    @model_validator(mode="after")
    def _in_one_form(self) -> ComparisonSection:
        if bool(self.pairs) == bool(self.champion or self.challengers):
            raise ValueError("expected champion and challengers, or pairs")
        if not self.pairs and not (self.champion and all(self.challengers) and self.challengers):
            raise ValueError("champion needs challengers and vice versa, and none of them may be empty")
        for one, other in self.pairs:
            if not one or not other or one == other:
                raise ValueError(f"expected a pair of two different models, got {[one, other]!r}")
        return self


def comparison_specs(comparisons: Sequence[ComparisonSection]) -> tuple[ComparisonSpec, ...]:
    """Comparisons that are asked for; a name is a pattern that matches it alone."""
    specs: list[ComparisonSpec] = []
    for comparison in comparisons:
        if comparison.champion is not None:
            specs.append(ComparisonSpec(comparison.champion, comparison.challengers))
        specs += [ComparisonSpec(one, (_literal(other),)) for one, other in comparison.pairs]
    return tuple(specs)


def _literal(name: str) -> str:
    """The pattern of one name, whatever signs it has."""
    return re.sub(r"([*?[])", r"[\1]", name)
