"""The join computed slowly: one event at a time, plain lists, full scans. The oracle of the tests beside it.

Written from the rules, not from the implementation; it shares only the event types.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

from msgspec.structs import replace

from streamwatch.core.records.events import (
    Invalid,
    Label,
    NullRecord,
    Outcome,
    Prediction,
    WrongFold,
    fold_of,
    model_of,
)
from tests.core.join.naive_dedup import NaiveDedup, due_second
from tests.core.join.naive_order import NaiveOrder
from tests.core.join.naive_pairs import NaivePairs

ORDER = ["joined", "corrected", "duplicate", "late", "withdrawn", "evicted", "over_limit"]
"""Results of a label that meets several predictions: it is counted as the first that applies."""


def own_time(event):
    return event["at"] if event["ts"] is None else event["ts"]


class NaiveJoin:
    def __init__(self, spec, start_ms=None):
        self.spec = spec
        self.start_ms = start_ms
        self.clock = -1
        self.count = Counter()
        self.pending = []  # in order of arrival
        self.early = []
        self.kept = []  # labels for further models, or for further folds of their model
        self.streams = {}  # model -> id and label resolved last in any fold, and the label before
        self.models = {}  # name -> last accepted prediction
        self.active = {}  # name -> what else is known of it
        self.made = Counter()  # name -> predictions accepted, of models that have not retired
        self.accepted = []  # predictions that were accepted, and those that retired
        self.known = {}  # name -> label resolved with last
        self.looked_s = -1
        self.retired = []
        self.arrivals = 0
        self.dedup = NaiveDedup(spec, self.count)
        self.passed = -1  # the clock when time passed last
        self.pairs = NaivePairs(spec, self.count, self.dedup, self.made)
        self.order = NaiveOrder(spec, self.count)

    @property
    def outcomes(self):
        return self.order.outcomes

    def evaluate(self, prediction, true_class, label_ms, resolved_ms, *, label_topic="", assumed=False):
        made_ms = own_time(prediction)
        if label_ms < made_ms and not assumed:
            self.count["negative_delay"] += 1
        delay = max(0, label_ms - made_ms)
        model = prediction["model"]
        scores, known, segments = prediction["scores"], prediction["known"], prediction["segments"]
        if self.spec.folds_share_stream and fold_of(model) is not None:
            known = self.label_before(model_of(model), prediction["id"], true_class)
        pairs = self.pairs.meet(prediction, true_class, self.models)
        answer = prediction["class"]
        outcome = Outcome(model, true_class, answer, label_ms, delay, assumed, scores, known, pairs, segments)
        outcome = replace(outcome, made=self.made[model] % 2**32, resolved_ms=resolved_ms)
        outcome = replace(outcome, waited_ms=resolved_ms - prediction["at"])
        if self.spec.carried:
            asked, requested = prediction["sampled"]
            outcome = replace(outcome, label_probability=asked, label_requested=requested)
        if prediction.get("last"):
            outcome = replace(outcome, last_class=prediction["last"])
        if not assumed:
            self.known[model] = true_class
            self.active[model]["joined"] += 1
            self.active[model]["label_topic"] = label_topic or self.active[model]["label_topic"]
            self.count["met on", prediction["topic"]] += prediction["topic"] != ""
        self.order.put(outcome, made_ms, resolved_ms)

    def label_before(self, model, key, true_class):
        """Label of the id that any fold of the model resolved before this one."""
        last_id, last_label, before = self.streams.get(model, (key, None, None))
        if last_id != key:
            before = last_label
        self.streams[model] = key, true_class, before
        return before

    def feed(self, event):
        self.clock = event.record_ms
        whole = 1 if self.spec.order == "prediction_time" else 1000  # deadlines are whole seconds
        if self.clock // whole > self.passed // whole:
            self.pass_time()
            self.passed = self.clock
        if isinstance(event, Prediction):
            self.predict(event)
        elif isinstance(event, Label):
            entry = {"id": event.id, "model": event.model, "class": event.true_class, "at": event.record_ms}
            entry |= {"ts": event.timestamp_ms, "topic": event.topic}
            self.count_label("with" if event.model is not None else "without", "accepted", entry)
            if event.model is None:
                self.label_all(entry)
            else:
                self.label_one(entry)
        elif isinstance(event, NullRecord):
            self.count["null", event.topic] += 1
            if event.withdraws and event.id is not None:
                for entry in [
                    p
                    for p in self.pending
                    if p["id"] == event.id and event.model in (None, model_of(p["model"]))
                ]:
                    self.leave(entry)
                    self.count["withdrawn"] += 1
                    self.dedup.add(entry, "withdrawn", event.record_ms)
        elif isinstance(event, Invalid):
            self.count["invalid", event.reason] += 1
            if event.model is not None:
                self.count_invalid(event.model)
        elif isinstance(event, WrongFold):
            self.count["wrong_fold"] += 1

    def count_invalid(self, model):
        known = [key for key in self.count if key[0] == "invalid of"]
        is_known = model in map(model_of, self.models)
        if ("invalid of", model) in known or len(known) < self.spec.max_models or is_known:
            self.count["invalid of", model] += 1

    def predict(self, event):
        entry = {"id": event.id, "model": event.model, "class": event.predicted_class, "at": event.record_ms}
        entry |= {"ts": event.timestamp_ms, "scores": event.scores, "segments": event.segments}
        entry["topic"], entry["sampled"] = event.topic, (event.label_probability, event.label_requested)
        entry["due"] = due_second(event.record_ms, self.spec.horizon_ms)
        pair = (event.id, event.model)
        same = [p for p in [*self.pending, *self.dedup.entries()] if (p["id"], p["model"]) == pair]
        if same:
            self.repeat(same[0], event, entry)
            return
        owner = model_of(event.model)
        early = next((e for e in self.early if (e["id"], e["model"]) == (event.id, owner)), None)
        shared = next((k for k in self.kept if (k["id"], k["model"]) == (event.id, owner)), None)
        bare = next((k for k in self.kept if (k["id"], k["model"]) == (event.id, None)), None)
        if event.model not in self.models and len(self.models) >= self.spec.max_models:
            self.count["over_limit"] += 1
            self.dedup.add(entry, "over_limit", event.record_ms)
            if early and owner == event.model:
                self.early.remove(early)
                self.count_label("with", "over_limit", early)
            if bare:
                self.meet(bare, "over_limit")
            return
        self.note_prediction(event)
        self.active[event.model]["topic"] = event.topic or self.active[event.model]["topic"]
        self.accepted.append(event)
        self.made[event.model] += 1
        self.count["accepted"] += 1
        self.count["made on", event.topic] += event.topic != ""
        entry["known"] = self.known.get(event.model)
        entry["arrival"] = self.arrivals = self.arrivals + 1
        label = early or shared or bare
        if label is None:
            self.pending.append(entry)
            if len(self.pending) > self.spec.max_pending:
                oldest = min(self.pending, key=lambda p: p["due"])
                self.leave(oldest)
                self.count["evicted"] += 1
                self.dedup.add(oldest, "evicted", event.record_ms)
            return
        topic = "" if label is shared else label["topic"]  # what is kept for other folds knows it no more
        self.evaluate(entry, label["class"], own_time(label), event.record_ms, label_topic=topic)
        self.dedup.add(entry, "resolved", event.record_ms, label["class"])
        if early:
            self.early.remove(early)
            self.count_label("with", "joined", early)
            if owner != event.model:
                self.keep_for_folds(early, event.record_ms)
        if bare and bare is not label:
            self.meet(bare, "duplicate" if bare["class"] == label["class"] else "corrected")
        elif bare:
            self.meet(bare, "joined")

    def repeat(self, same, event, entry):
        stands = same.get("last") or same["class"]
        repeated = stands == event.predicted_class
        self.count["duplicate" if repeated else "conflict"] += 1
        if repeated or same not in self.pending or self.spec.conflicts == "first":
            return
        self.note_prediction(event)
        if self.spec.conflicts == "both":
            same["last"] = event.predicted_class
            return
        same.update({name: entry[name] for name in ("class", "scores", "segments", "sampled")})
        same["ts"] = own_time(entry)
        same["known"] = self.known.get(event.model)

    def go_on_with(self, conflicts):
        """Go on with another setting: what `both` kept beside the first counts with `last`, or is dropped."""
        self.spec = dataclasses.replace(self.spec, conflicts=conflicts)
        if conflicts != "both":
            for entry in self.pending:
                last = entry.pop("last", None)
                if last is not None and conflicts == "last":
                    entry["class"] = last

    def note_prediction(self, event):
        self.models[event.model] = max(event.record_ms, self.models.get(event.model, -1))
        new = {"first": event.record_ms, "last_event": -1, "joined": 0, "left": 0}
        new |= {"topic": None, "label_topic": None}
        active = self.active.setdefault(event.model, new)
        own_ms = event.record_ms if event.timestamp_ms is None else min(event.timestamp_ms, event.record_ms)
        active["last_event"] = max(active["last_event"], own_ms)

    def leave(self, entry):
        self.pending.remove(entry)
        self.active[entry["model"]]["left"] += 1

    def keep_for_folds(self, label, at):
        """Keep a label that named a model and met a fold of it for the other folds."""
        due = due_second(at, self.spec.horizon_ms)
        self.kept.append({**label, "ts": own_time(label), "at": at, "due": due, "met": True})
        self.trim_labels()

    def meet(self, bare, result):
        if not bare["met"]:
            bare["met"] = True
            self.count_label("without", result, bare)

    def count_label(self, form, result, label):
        self.count[f"{form}_{result}"] += 1
        self.count["label on", label["topic"], result] += label["topic"] != ""

    def label_one(self, label):
        same_id = [p for p in self.pending if p["id"] == label["id"]]
        pending = [p for p in same_id if model_of(p["model"]) == label["model"]]
        results = self.settled_as(label, lambda model: model_of(model) == label["model"])
        for entry in pending:
            self.pending.remove(entry)
            self.evaluate(entry, label["class"], own_time(label), label["at"], label_topic=label["topic"])
            self.dedup.add(entry, "resolved", label["at"], label["class"])
        result = "joined" if pending else next((name for name in ORDER if name in results), None)
        if result is None:
            known = [e["class"] for e in self.early if (e["id"], e["model"]) == (label["id"], label["model"])]
            for model in (label["model"], None):
                known += [k["class"] for k in self.kept if (k["id"], k["model"]) == (label["id"], model)]
            if known:
                result = "duplicate" if known[0] == label["class"] else "corrected"
        if result is not None:
            self.count_label("with", result, label)
            if any(p["model"] != label["model"] for p in pending):
                self.keep_for_folds(label, label["at"])
        elif not self.spec.retain_unmatched:
            self.lose("with", label)
        else:
            self.early.append({**label, "due": due_second(label["at"], self.spec.early_horizon_ms)})
            self.count["early"] += 1
            self.trim_labels()

    def settled_as(self, label, is_meant):
        """Results that the dedup entries of the label's id give it."""
        results = set()
        for settled in self.dedup.entries():
            if settled["id"] == label["id"] and is_meant(settled["model"]):
                if settled["why"] == "resolved":
                    results.add("duplicate" if settled["true_class"] == label["class"] else "corrected")
                else:
                    results.add({"expired": "late"}.get(settled["why"], settled["why"]))
        return results

    def label_all(self, label):
        for bare in self.kept:
            if (bare["id"], bare["model"]) == (label["id"], None):
                result = "duplicate" if bare["class"] == label["class"] else "corrected"
                self.count_label("without", result, label)
                return
        results = self.settled_as(label, lambda _: True)
        for entry in [p for p in self.pending if p["id"] == label["id"]]:
            results.add("joined")
            self.pending.remove(entry)
            self.evaluate(entry, label["class"], own_time(label), label["at"], label_topic=label["topic"])
            self.dedup.add(entry, "resolved", label["at"], label["class"])
        result = next((name for name in ORDER if name in results), None)
        if result:
            self.count_label("without", result, label)
        elif not self.spec.retain_unmatched:
            self.lose("without", label)
            return
        else:
            self.count["early"] += 1
        due = due_second(label["at"], self.spec.horizon_ms)
        self.kept.append({**label, "due": due, "met": result is not None})
        self.trim_labels()

    def lose(self, form, label):
        unread = self.start_ms is not None and label["at"] < self.start_ms + self.spec.horizon_ms
        self.count_label(form, "before_start" if unread else "orphaned", label)

    def trim_labels(self):
        if len(self.early) + len(self.kept) <= self.spec.max_labels:
            return
        early = min(self.early, key=lambda e: e["due"], default=None)
        kept = min(self.kept, key=lambda k: k["due"], default=None)
        if kept is None or (early is not None and early["at"] < kept["at"]):
            self.early.remove(early)
            self.count_label("with", "dropped", early)
        else:
            self.kept.remove(kept)
            if kept["met"]:
                self.count["retained_evicted"] += 1
            else:
                self.count_label("without", "dropped", kept)

    def pass_time(self):
        now_s = self.clock // 1000
        if now_s == self.passed // 1000:  # deadlines are whole seconds
            self.order.release(self.clock)
            return
        for entry in sorted((p for p in self.pending if p["due"] <= now_s), key=lambda p: p["due"]):
            self.leave(entry)
            self.count["expired"] += 1
            due_ms = entry["due"] * 1000
            if self.spec.assume is not None:
                self.count["assumed"] += 1
                self.evaluate(entry, self.spec.assume, due_ms, due_ms, assumed=True)
            self.dedup.add(entry, "expired", due_ms, self.spec.assume)
        self.order.release(self.clock)
        for label in [e for e in self.early if e["due"] <= now_s]:
            self.early.remove(label)
            self.lose("with", label)
        for label in [b for b in self.kept if b["due"] <= now_s]:
            self.kept.remove(label)
            if not label["met"]:
                self.lose("without", label)
        self.dedup.pass_time(self.clock)
        self.retire(now_s)

    def retire(self, now_s):
        if now_s <= self.looked_s:
            return
        self.looked_s = now_s
        busy = {p["model"] for p in self.pending} | {held[3].model for held in self.order.held}
        for model, last_ms in list(self.models.items()):
            if due_second(last_ms, 2 * self.spec.horizon_ms) <= now_s and model not in busy:
                del self.models[model], self.active[model], self.made[model]
                self.known.pop(model, None)
                self.retired.append((len(self.outcomes), model))
                if model_of(model) not in map(model_of, self.models):  # not even a fold of it is left
                    self.count.pop(("invalid of", model_of(model)), None)
                with_folds = {model_of(name) for name in self.models if fold_of(name) is not None}
                for gone in self.streams.keys() - with_folds:
                    del self.streams[gone]

    def retired_after_outcomes(self):
        """(outcomes before it, model) of every retirement the estimators have to hear of."""
        heard, since = [], {}
        for position, model in self.retired:
            if any(outcome.model == model for outcome in self.outcomes[since.get(model, 0) : position]):
                heard.append((position, model))
            since[model] = position
        return heard
