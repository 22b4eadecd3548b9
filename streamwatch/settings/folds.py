"""`folds`: how models that predict in folds are validated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import Section


class FoldsSection(Section):
    """k-fold distributed prequential validation: several copies of each model, distinguished by `fold`."""

    scheme: Literal["cross-validation", "split-validation", "bootstrap"] | None = None
    """Scheme that decides which fold tests and which trains on an id: cross-validation, split-validation or
    bootstrap (docs/folds). If not set, predictions that name a fold are refused."""
    k: Annotated[int, Bounded(least=1, most=1_000)] = 10
    """Number of folds of every model, numbered 0 to k - 1. Each fold is evaluated separately."""
    prequential: bool = True
    """Let every fold test every id before it trains. If false, a fold tests only where the scheme says so."""

    @model_validator(mode="after")
    def _enough(self) -> FoldsSection:
        if self.k < 2 and self.scheme in ("cross-validation", "split-validation"):
            raise ValueError(f"k must be at least 2 under {self.scheme}, got {self.k}")
        return self
