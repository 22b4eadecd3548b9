"""Details of models, to which each layer adds when the details of a model are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

Document: TypeAlias = Mapping[str, object]


class Layered(Mapping[str, Document]):
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

    def __getitem__(self, model: str) -> Document:
        if model in self._further:
            return self._change(model, {})
        return self._change(model, self._details[model])

    def __contains__(self, model: object) -> bool:
        return model in self._details or model in self._further

    def __iter__(self) -> Iterator[str]:
        yield from self._details
        yield from self._further

    def __len__(self) -> int:
        return len(self._details) + len(self._further)

    def __repr__(self) -> str:
        return repr(dict(self))
