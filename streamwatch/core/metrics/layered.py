"""Details of models to which more is added when the details of a model are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

Document: TypeAlias = Mapping[str, object]


class Layered(Mapping[str, Document]):
    """Details by model, changed when they are asked for.

    Parameters
    ----------
    details
        Details before.
    further
        Models that have details afterwards, even if they had none before.
    change
        Returns the details of a model, given its name and what they were; it must not change those.
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
