"""Records with arrays of which each element is an event: ordinary, nearly so, or not at all."""

from __future__ import annotations

import random

from tests.edge.decoders.mutations import SCALARS, damage, written
from tests.edge.decoders.records import FakeRecord
from tests.edge.decoders.scored import MOMENTS, number, scores


def element(chance: random.Random, k: int, oddity: float) -> str:
    """One model's answer as it is written."""
    pairs = {
        "id": chance.choice((f'"e-{chance.randrange(90)}"', f"{chance.randrange(90)}")),
        "model": f'"m{k}"',
        "class": chance.choice(('"yes"', '"no"', "1")),
        "label": chance.choice(('"yes"', '"no"', "0")),
        "at": chance.choice(MOMENTS[:3]),
        "score": number(chance, oddity),
        "deep": f'{{"x": [1, {{}}], "version": {chance.randrange(3)}}}',
        "site": chance.choice(('"a"', '"b"', "null")),
        "probabilities": f'{{"yes": {chance.random()}, "no": {number(chance, oddity / 4)}}}',
    }
    if chance.random() < 0.4:
        pairs["scores"] = scores(chance, oddity)
    if chance.random() < 0.4:
        pairs["logits"] = scores(chance, oddity)
    for name in ("site", "deep"):
        if chance.random() < 0.1:
            del pairs[name]
    if chance.random() < oddity / 6:
        pairs[chance.choice((*pairs, "x"))] = chance.choice(SCALARS)
    if chance.random() < oddity / 8:
        del pairs[chance.choice(list(pairs))]
    items = list(pairs.items())
    if chance.random() < oddity / 4:
        chance.shuffle(items)
    if chance.random() < oddity / 6:
        items.append(chance.choice(items))
    space = " " if chance.random() < oddity / 3 else ""
    fields = f",{space}".join([f'"{name}":{space}{text}' for name, text in items])
    return f"{{{space}{fields}{space}}}"


def array(chance: random.Random, count: int, oddity: float, item: str | None = None) -> str:
    """An array of answers, or of what `item` says, one of them or the whole of it odd now and then."""
    items = [
        element(chance, k, oddity)
        if item is None
        else {"number": f"{k + 1}", "class": chance.choice(('"yes"', '"no"')), "model": f'"m{k}"'}[item]
        for k in range(count)
    ]
    if items and chance.random() < oddity / 5:
        items[chance.randrange(len(items))] = chance.choice((*SCALARS, "[]", "{}", '{"a":[{"b":1}]}'))
    if chance.random() < oddity / 8:
        return chance.choice(SCALARS)
    space = " " if chance.random() < oddity / 3 else ""
    return f"[{space}{f',{space}'.join(items)}{space}]"


def nested(chance: random.Random, n: int, oddity: float, *, bare: float = 0.05) -> FakeRecord:
    """A record with arrays, ordinary or not; a share of them are `bare` arrays."""
    count = chance.choice((1, 2, 3, 3, 3, 5))

    def length() -> int:
        return count if chance.random() >= oddity / 8 else chance.choice((0, 1, 2, 40))

    first, second = (array(chance, length(), oddity, item) for item in ("class", "model"))
    contents = {
        "id": f'"id-{n}"',
        "model": chance.choice(('"m"', '"n"', "7")),
        "label": chance.choice(('"yes"', '"no"', "0")),
        "kind": chance.choice(('"prediction"', '"label"')),
        "at": chance.choice(MOMENTS[:3] if chance.random() >= oddity / 4 else MOMENTS),
        "each": array(chance, length(), oddity),
        "ids": array(chance, length(), oddity, "number"),
        "classes": array(chance, length(), oddity, "class"),
        "outputs": f'[{{"name": "x", "data": {first}}}, {{"data": {second}, "version": 3}}]',
    }
    if chance.random() < 0.05:
        contents["scores"] = scores(chance, oddity)
    for name in ("at", "ids", "model"):
        if chance.random() < 0.15:
            del contents[name]
    value = bytearray(written(chance, contents, oddity / 2))
    if chance.random() < bare:
        value = bytearray(array(chance, count, oddity).encode("utf-8", "surrogatepass"))
    if chance.random() < oddity / 8:
        damage(chance, value)
    return FakeRecord(bytes(value), chance.choice((b"key-%d" % n, b"k" * 125, None)))
