"""`folds`: how models that predict in folds are validated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import Section


class FoldsSection(Section):
    """k-fold distributed prequential validation: several copies of a model, told apart by `fold`."""

    scheme: Literal["cross-validation", "split-validation", "bootstrap"] | None = None
    """Which fold tests and trains on which id (docs/folds); without it predictions by folds are refused."""
    k: Annotated[int, Bounded(least=1, most=1_000)] = 10
    """Number of folds of every model, 0 to k - 1; each is monitored as a model of its own."""
    prequential: bool = True
    """Every fold tests every id before it trains; false: a fold tests only where the scheme says so."""

    @model_validator(mode="after")
    def _enough(self) -> FoldsSection:
        if self.k < 2 and self.scheme in ("cross-validation", "split-validation"):
            raise ValueError(f"k must be at least 2 under {self.scheme}, got {self.k}")
        return self
