"""The join told slowly: one event at a time, plain lists, full scans. The oracle of the tests beside it.

Written from the rules, not from the implementation; it shares only the event types.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from streamwatch.core.events import Invalid, Label, NullRecord, Outcome, Prediction
from tests.core.join.naive_dedup import NaiveDedup, due_second
from tests.core.join.naive_order import NaiveOrder
from tests.core.join.naive_pairs import NaivePairs


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
        self.bare = []
        self.models = {}  # name -> last accepted prediction
        self.known = {}  # name -> label resolved with last
        self.looked_s = -1
        self.retired = []
        self.arrivals = 0
        self.dedup = NaiveDedup(spec, self.count)
        self.passed = -1  # the clock when time passed last
        self.pairs = NaivePairs(spec, self.count, self.dedup)
        self.order = NaiveOrder(spec, self.count)

    @property
    def outcomes(self):
        return self.order.outcomes

    def evaluate(self, prediction, true_class, label_ms, resolved_ms, *, assumed=False):
        made_ms = own_time(prediction)
        if label_ms < made_ms and not assumed:
            self.count["negative_delay"] += 1
        delay = max(0, label_ms - made_ms)
        model = prediction["model"]
        scores, known, segments = prediction["scores"], prediction["known"], prediction["segments"]
        pairs = self.pairs.meet(prediction, true_class, self.models)
        answer = prediction["class"]
        outcome = Outcome(model, true_class, answer, label_ms, delay, assumed, scores, known, pairs, segments)
        if prediction.get("last"):
            outcome = replace(outcome, last_class=prediction["last"])
        if not assumed:
            self.known[model] = true_class
            self.count["met on", prediction["topic"]] += prediction["topic"] != ""
        self.order.put(outcome, made_ms, resolved_ms)

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
                    p for p in self.pending if p["id"] == event.id and event.model in (None, p["model"])
                ]:
                    self.pending.remove(entry)
                    self.count["withdrawn"] += 1
                    self.dedup.add(entry, "withdrawn", event.record_ms)
        elif isinstance(event, Invalid):
            self.count["invalid", event.reason] += 1

    def predict(self, event):
        entry = {"id": event.id, "model": event.model, "class": event.predicted_class, "at": event.record_ms}
        entry |= {"ts": event.timestamp_ms, "scores": event.scores, "segments": event.segments}
        entry["topic"] = event.topic
        entry["due"] = due_second(event.record_ms, self.spec.horizon_ms)
        pair = (event.id, event.model)
        same = [p for p in [*self.pending, *self.dedup.entries()] if (p["id"], p["model"]) == pair]
        if same:
            stands = same[0].get("last") or same[0]["class"]
            repeated = stands == event.predicted_class
            self.count["duplicate" if repeated else "conflict"] += 1
            if same[0] in self.pending and not repeated and self.spec.conflicts == "last":
                self.models[event.model] = max(event.record_ms, self.models[event.model])
                same[0].update({name: entry[name] for name in ("class", "scores", "segments")})
                same[0]["ts"] = own_time(entry)
                same[0]["known"] = self.known.get(event.model)
            elif same[0] in self.pending and not repeated and self.spec.conflicts == "both":
                self.models[event.model] = max(event.record_ms, self.models[event.model])
                same[0]["last"] = event.predicted_class
            return
        early = next((e for e in self.early if (e["id"], e["model"]) == pair), None)
        bare = next((b for b in self.bare if b["id"] == event.id), None)
        if event.model not in self.models and len(self.models) >= self.spec.max_models:
            self.count["over_limit"] += 1
            self.dedup.add(entry, "over_limit", event.record_ms)
            if early:
                self.early.remove(early)
                self.count_label("with", "over_limit", early)
            if bare:
                self.meet(bare, "over_limit")
            return
        self.models[event.model] = max(event.record_ms, self.models.get(event.model, -1))
        self.count["accepted"] += 1
        self.count["made on", event.topic] += event.topic != ""
        entry["known"] = self.known.get(event.model)
        entry["arrival"] = self.arrivals = self.arrivals + 1
        label = early or bare
        if label is None:
            self.pending.append(entry)
            if len(self.pending) > self.spec.max_pending:
                oldest = min(self.pending, key=lambda p: p["due"])
                self.pending.remove(oldest)
                self.count["evicted"] += 1
                self.dedup.add(oldest, "evicted", event.record_ms)
            return
        self.evaluate(entry, label["class"], own_time(label), event.record_ms)
        self.dedup.add(entry, "resolved", event.record_ms, label["class"])
        if early:
            self.early.remove(early)
            self.count_label("with", "joined", early)
            if bare:
                self.meet(bare, "duplicate" if bare["class"] == early["class"] else "corrected")
        else:
            self.meet(bare, "joined")

    def meet(self, bare, result):
        if not bare["met"]:
            bare["met"] = True
            self.count_label("without", result, bare)

    def count_label(self, form, result, label):
        self.count[f"{form}_{result}"] += 1
        self.count["label on", label["topic"], result] += label["topic"] != ""

    def label_one(self, label):
        pair = (label["id"], label["model"])
        for entry in self.pending:
            if (entry["id"], entry["model"]) == pair:
                self.pending.remove(entry)
                self.count_label("with", "joined", label)
                self.evaluate(entry, label["class"], own_time(label), label["at"])
                self.dedup.add(entry, "resolved", label["at"], label["class"])
                return
        settled = self.dedup.find(*pair)
        if settled and settled["why"] != "resolved":
            self.count_label("with", {"expired": "late"}.get(settled["why"], settled["why"]), label)
            return
        known = [settled["true_class"]] if settled else []
        known += [e["class"] for e in self.early if (e["id"], e["model"]) == pair]
        known += [b["class"] for b in self.bare if b["id"] == label["id"]]
        if known:
            self.count_label("with", "duplicate" if known[0] == label["class"] else "corrected", label)
        elif not self.spec.retain_unmatched:
            self.lose("with", label)
        else:
            self.early.append({**label, "due": due_second(label["at"], self.spec.early_horizon_ms)})
            self.count["early"] += 1
            self.trim_labels()

    def label_all(self, label):
        for bare in self.bare:
            if bare["id"] == label["id"]:
                result = "duplicate" if bare["class"] == label["class"] else "corrected"
                self.count_label("without", result, label)
                return
        results = set()
        for settled in self.dedup.entries():
            if settled["id"] == label["id"]:
                if settled["why"] == "resolved":
                    results.add("duplicate" if settled["true_class"] == label["class"] else "corrected")
                else:
                    results.add({"expired": "late"}.get(settled["why"], settled["why"]))
        for entry in [p for p in self.pending if p["id"] == label["id"]]:
            results.add("joined")
            self.pending.remove(entry)
            self.evaluate(entry, label["class"], own_time(label), label["at"])
            self.dedup.add(entry, "resolved", label["at"], label["class"])
        order = ["joined", "corrected", "duplicate", "late", "withdrawn", "evicted", "over_limit"]
        result = next((name for name in order if name in results), None)
        if result:
            self.count_label("without", result, label)
        elif not self.spec.retain_unmatched:
            self.lose("without", label)
            return
        else:
            self.count["early"] += 1
        due = due_second(label["at"], self.spec.horizon_ms)
        self.bare.append({**label, "due": due, "met": result is not None})
        self.trim_labels()

    def lose(self, form, label):
        unread = self.start_ms is not None and label["at"] < self.start_ms + self.spec.horizon_ms
        self.count_label(form, "before_start" if unread else "orphaned", label)

    def trim_labels(self):
        if len(self.early) + len(self.bare) <= self.spec.max_labels:
            return
        early = min(self.early, key=lambda e: e["due"], default=None)
        bare = min(self.bare, key=lambda b: b["due"], default=None)
        if bare is None or (early is not None and early["at"] < bare["at"]):
            self.early.remove(early)
            self.count_label("with", "dropped", early)
        else:
            self.bare.remove(bare)
            if bare["met"]:
                self.count["retained_evicted"] += 1
            else:
                self.count_label("without", "dropped", bare)

    def pass_time(self):
        now_s = self.clock // 1000
        if now_s == self.passed // 1000:  # deadlines are whole seconds
            self.order.release(self.clock)
            return
        for entry in sorted((p for p in self.pending if p["due"] <= now_s), key=lambda p: p["due"]):
            self.pending.remove(entry)
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
        for label in [b for b in self.bare if b["due"] <= now_s]:
            self.bare.remove(label)
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
                del self.models[model]
                self.known.pop(model, None)
                self.retired.append((len(self.outcomes), model))

    def retired_after_outcomes(self):
        """(outcomes before it, model) of every retirement the estimators have to hear of."""
        heard, since = [], {}
        for position, model in self.retired:
            if any(outcome.model == model for outcome in self.outcomes[since.get(model, 0) : position]):
                heard.append((position, model))
            since[model] = position
        return heard
