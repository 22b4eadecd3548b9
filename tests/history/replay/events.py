"""Lines of predictions and labels, and readers of what a replay found in them."""

from __future__ import annotations

import csv

SECOND = 1_000


def series(result):
    return {(f.name, *labels): value for f in result.families for labels, value in f.samples}


def counter(result, name):
    return next(value for f in result.families if f.name == name for _, value in f.samples)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def predicted_class(name, model, label, at_s):
    return {"id": name, "model": model, "prediction": label, "timestamp": at_s * SECOND}


def labelled(name, label, at_s):
    return {"id": name, "label": label, "timestamp": at_s * SECOND}
