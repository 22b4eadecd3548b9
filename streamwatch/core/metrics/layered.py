"""Details of models: parts that are built when they are read, and layers that add to them.

A document of a model may take a tenth of a millisecond to build. Who needs little of it for many models names
the parts that it needs (`with_parts`); a part is the document of a register, the confusion matrix or the
recoveries. All other fields are there in any case.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

Document: TypeAlias = Mapping[str, object]


class DetailsInParts(Mapping[str, Document]):
    """Details by model, of which only the parts that are needed are built."""

    @abstractmethod
    def with_parts(self, model: str, parts: Collection[str] | None) -> Document:
        """Build the details of a model, with these of its parts only; None: all.

        Raises KeyError for a model without details.
        """

    def __getitem__(self, model: str) -> Document:
        return self.with_parts(model, None)

    def __repr__(self) -> str:
        return repr(dict(self))


def with_parts(details: Mapping[str, Document], model: str, parts: Collection[str]) -> Document:
    """Build the details of a model with these of its parts; empty for a model without details.

    Details of any other mapping are returned whole.
    """
    if model not in details:
        return {}
    return details.with_parts(model, parts) if isinstance(details, DetailsInParts) else details[model]


class Layered(DetailsInParts):
    """Mapping of details by model that applies a function to them on each read.

    Parameters
    ----------
    details
        Details by model that the function is applied to.
    further
        Further models to include; the function gets empty details for those that are not in `details`.
    change
        Function from a model's name and details to its new details; it must not modify its argument.
    """

    def __init__(
        self,
        details: Mapping[str, Document],
        further: Iterable[str],
        change: Callable[[str, Document], Document],
    ) -> None:
        self._details = details
        self._further = dict.fromkeys(name for name in further if name not in details)
        self._change = change

    def with_parts(self, model: str, parts: Collection[str] | None) -> Document:
        """Apply the function to the details with these parts."""
        if model in self._further:
            return self._change(model, {})
        below = self._details
        if parts is None or not isinstance(below, DetailsInParts):
            return self._change(model, below[model])
        return self._change(model, below.with_parts(model, parts))

    def __contains__(self, model: object) -> bool:
        return model in self._details or model in self._further

    def __iter__(self) -> Iterator[str]:
        yield from self._details
        yield from self._further

    def __len__(self) -> int:
        return len(self._details) + len(self._further)
