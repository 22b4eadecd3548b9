"""Pairs of predictions that the naive join makes for the comparison of models."""

from __future__ import annotations

from collections import Counter

from streamwatch.core.records.events import PairedAnswer, fold_of


class NaivePairs:
    def __init__(self, spec, count, dedup, made):
        self.spec = spec
        self.count = count
        self.dedup = dedup
        self.made = made
        self.awaited = None  # (generation, models that entries of it wait for); None before the first outcome
        self.runs = Counter()  # a model that was gone when a generation began counts as another

    def compared(self, one, other):
        if fold_of(one) is not None or fold_of(other) is not None:  # folds are compared by themselves
            return False
        for group in self.spec.comparisons:
            for champion, challenger in ((one, other), (other, one)):
                wanted = any(pattern in {challenger, "*"} for pattern in group.challengers)
                if group.champion == champion and challenger != champion and wanted:
                    return True
        return False

    def meet(self, prediction, true_class, models):
        if not self.spec.comparisons:
            return None
        if self.awaited is None or self.awaited[0] != self.dedup.generation:
            before = self.awaited[1] if self.awaited else set()
            now = set(models) if self.awaited else set()
            for model in now - before:
                self.runs[model] += 1
            self.awaited = self.dedup.generation, now
        model = prediction["model"]
        prediction["waits"] = {
            (other, self.runs[other]) for other in self.awaited[1] if self.compared(model, other)
        }
        prediction["expected"] = frozenset(prediction["waits"])
        met = [
            settled
            for settled in self.dedup.entries()
            if settled["id"] == prediction["id"]
            and (
                settled["why"] == "resolved" or (settled["why"] == "expired" and self.spec.assume is not None)
            )
            and self.compared(model, settled["model"])
        ]
        pairs = []
        for settled in sorted(met, key=lambda settled: settled["model"]):
            me = model, self.runs[model] if model in self.awaited[1] else 0
            settled["again"] += me in settled["expected"] and me not in settled["waits"]
            settled["waits"].discard(me)
            prediction["waits"].discard((settled["model"], self.runs[settled["model"]]))
            if settled["true_class"] == true_class:
                made = self.made[settled["model"]] % 2**32
                pairs.append(PairedAnswer(settled["model"], settled["class"], made))
                self.count["pairs_made"] += 1
            else:
                self.count["pairs_differ"] += 1
        return tuple(pairs) or None
