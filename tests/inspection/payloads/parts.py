"""Parts that payloads of several families are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.inspection.story import Item


def batches(items: Sequence[Item], sizes: Sequence[int] = (1, 2, 3, 4)) -> Iterator[list[Item]]:
    """Requests of one call to a server, one after another."""
    at, turn = 0, 0
    while at < len(items):
        size = sizes[turn % len(sizes)]
        yield list(items[at : at + size])
        at, turn = at + size, turn + 1


def probabilities(item: Item, classes: Sequence[str]) -> list[float]:
    """The score for the predicted class, the rest shared by the others."""
    rest = (1 - item.score) / (len(classes) - 1)
    return [item.score if name == item.predicted else rest for name in classes]


def event(kind: str, id_: str, data: object, **more: str) -> dict[str, object]:
    """A structured CloudEvent."""
    return {"specversion": "1.0", "id": id_, "source": "/serving", "type": kind, "data": data} | more
