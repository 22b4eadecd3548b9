"""Words in names of fields and topics, with weights in [-1, 1] for each role in a mapping.

Weights only order candidates that contents leave open; no word decides alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# fmt: off
PREDICTION: Final[Mapping[str, float]] = {
    "prediction": 1.0, "predicted": 1.0, "predict": 1.0, "pred": 1.0, "preds": 1.0, "hat": 1.0,
    "yhat": 1.0, "inferred": 1.0, "inference": 0.8, "forecast": 0.9, "estimated": 0.7, "expected": 0.6,
    "decision": 0.7, "classified": 0.8, "classification": 0.8, "recommendation": 0.7, "suggested": 0.7,
    "output": 0.6, "verdict": 0.6, "class": 0.6, "label": 0.5, "result": 0.5, "will": 0.5, "flag": 0.4,
    "response": 0.4, "category": 0.3, "risk": 0.3, "band": 0.2, "action": 0.3, "is": 0.2, "intent": 0.3,
    "scored": 0.3, "top": 0.2, "assigned": 0.2, "vorhersage": 1.0, "prognose": 1.0, "prediccion": 1.0,
    "outcome": 0.2, "answer": 0.3, "guess": 0.8, "model": 0.1, "actual": -0.9, "truth": -0.9, "true": -0.6,
    "ground": -0.9, "confirmed": -0.5, "previous": -0.8, "prev": -0.8, "last": -0.6, "final": -0.4,
    "before": -0.8, "old": -0.8, "gold": -0.7,
}
LABEL: Final[Mapping[str, float]] = {
    "label": 1.0, "truth": 1.0, "ground": 0.9, "actual": 1.0, "target": 0.9, "true": 0.9, "y": 0.8,
    "gold": 0.9, "outcome": 0.9, "annotation": 0.9, "annotated": 0.9, "confirmed": 0.7, "observed": 0.8,
    "real": 0.7, "final": 0.6, "result": 0.6, "resolution": 0.6, "verdict": 0.6, "corrected": 0.6,
    "feedback": 0.5, "class": 0.6, "decision": 0.4, "answer": 0.4, "status": 0.2, "is": 0.3, "was": 0.5,
    "did": 0.5, "has": 0.2, "category": 0.3, "flag": 0.4, "clicked": 0.6, "click": 0.6, "converted": 0.6,
    "conversion": 0.6, "churned": 0.6, "churn": 0.4, "fraud": 0.5, "fraudulent": 0.5, "defaulted": 0.6,
    "purchased": 0.5, "returned": 0.4, "disposition": 0.6, "diagnosis": 0.6, "ergebnis": 0.6,
    "wahrheit": 1.0, "etiqueta": 0.9, "response": 0.3, "happened": 0.5, "reviewed": 0.4, "predicted": -0.9,
    "prediction": -0.9, "pred": -0.9, "model": -0.6, "score": -0.5, "hat": -0.9, "expected": -0.5,
    "previous": -0.8, "prev": -0.8, "before": -0.8, "old": -0.8, "last": -0.4, "suggested": -0.6,
    "estimated": -0.6,
}
ATTRIBUTE: Final = _set(
    "country currency region channel device segment version op type source lang language locale page "
    "partition schema connector table tenant state city zip platform os browser merchant store shop "
    "plan env environment method protocol host node worker shard level tier priority retry attempt "
    "attempts count handler analyst agent operator reviewer db snapshot site gender age year month day "
    "hour weekday size bucket experiment variant arm datatype shape scheme content encoding"
)
"""Words of attributes of a request, which are neither predicted nor true classes."""
ID: Final[Mapping[str, float]] = {
    "id": 0.6, "uuid": 0.8, "guid": 0.8, "key": 0.4, "request": 0.5, "prediction": 0.5, "transaction": 0.5,
    "txn": 0.5, "event": 0.1, "correlation": 0.7, "order": 0.3, "impression": 0.5, "inference": 0.5,
    "ref": 0.4, "reference": 0.4, "number": 0.2, "no": 0.2, "ticket": 0.3, "claim": 0.3,
    "application": 0.3, "case": 0.3, "customer": 0.1, "user": -0.3, "session": -0.2, "device": -0.3,
    "account": -0.2, "trace": 0.1, "sequence": -0.6, "seq": -0.6, "offset": -0.8, "version": -0.7,
    "count": -0.8, "index": -0.5, "row": -0.4, "amount": -0.9, "price": -0.9, "total": -0.8, "age": -0.9,
    "time": -0.6, "timestamp": -0.8, "ts": -0.8, "date": -0.7, "at": -0.6, "ms": -0.7, "latency": -0.9,
    "duration": -0.9, "score": -0.9, "lsn": -0.8,
}
TIME: Final[Mapping[str, float]] = {
    "timestamp": 1.0, "ts": 0.9, "time": 0.9, "at": 0.7, "date": 0.5, "datetime": 0.9, "when": 0.7,
    "ms": 0.3, "occurred": 0.6, "created": 0.3, "event": 0.4, "scored": 0.6, "predicted": 0.6,
    "labelled": 0.6, "labeled": 0.6, "decided": 0.5, "confirmed": 0.5, "resolved": 0.5, "zeit": 0.8,
    "expires": -1.0, "expiry": -1.0, "birth": -1.0, "due": -0.8, "start": -0.2, "previous": -0.8,
    "last": -0.6, "first": -0.5, "ingested": -0.2, "ingest": -0.2, "updated": 0.2, "emitted": 0.2,
    "sent": 0.2,
}
MODEL: Final[Mapping[str, float]] = {
    "model": 1.0, "modell": 1.0, "modelo": 1.0, "scorer": 0.7, "classifier": 0.8, "algorithm": 0.6,
    "algo": 0.6, "predictor": 0.8, "deployment": 0.5, "endpoint": 0.4, "variant": 0.4, "arm": 0.4,
    "version": -0.3, "framework": -1.0, "type": -0.6, "runtime": -1.0, "latency": -1.0, "owner": -1.0,
    "hash": -0.5, "checksum": -1.0, "url": -0.5, "path": -0.4, "family": -0.3, "stage": -0.5,
    "status": -1.0, "approval": -1.0,
}
# fmt: on
PREDICTION_TOPIC: Final = _set(
    "prediction predictions predicted score scores scored scoring inference inferences decisions "
    "decision model models serving bids output outputs preds pred classifications requests "
    "recommendations"
)
LABEL_TOPIC: Final = _set(
    "label labels truth truths ground outcome outcomes feedback chargeback chargebacks clicks click "
    "conversions actual actuals results result returns annotations reviews review resolved resolutions "
    "confirmed status closed disputes verdicts targets"
)
SCORES: Final = _set(
    "score scores scoring probability probabilities prob probs proba probas likelihood likelihoods logit "
    "logits confidence confidences softmax distribution prediction predictions output outputs columns "
    "votes weights margin margins p"
)
"""Words of fields with a number for each class."""

POSITIVE: Final = _set(
    "1 true yes y t fraud fraudulent positive pos bad spam churn churned click clicked default "
    "defaulted anomaly anomalous malicious hit match confirmed accept accepted approve approved pass "
    "passed on ja si oui"
)
NEGATIVE: Final = _set(
    "0 false no n f legit legitimate negative neg good ham retained stay stayed noclick no_click none "
    "ok normal benign clean miss nomatch genuine reject rejected decline declined fail failed off nein "
    "non -1"
)


def words(text: str) -> list[str]:
    """Split a name into words in lower case; `orderNumber` and `order_number` give the same."""
    return [word.lower() for word in _WORD.findall(text)]


_PAIR: Final = re.compile(r"\[\w+=([^\]]*)\](\.([a-z]+_?)?[vV]alue)*")


def named_steps(location: str) -> str:
    """Write pairs of key and value in a location as fields: `a[key=model].value` → `a.model`."""
    return (
        _PAIR.sub(lambda found: f".{found[1].replace('.', '_')}", location) if "=" in location else location
    )


def weight(location: str, table: Mapping[str, float], *, outer: float = 0.4) -> float:
    """Sum the weights of the words of a location, clipped to [-1, 1].

    Words before the last step count `outer` times.
    """
    head, _, leaf = named_steps(location).removeprefix("header:").removeprefix("value.").rpartition(".")
    inner = sum(table.get(word, 0.0) for word in dict.fromkeys(words(leaf)))
    around = sum(table.get(word, 0.0) for word in dict.fromkeys(words(head)))
    return max(-1.0, min(1.0, inner + outer * max(-1.0, min(1.0, around))))


def describes(location: str) -> bool:
    """Return whether the last step of a location names an attribute of a request, such as `country`."""
    return bool(ATTRIBUTE & set(words(location.rpartition(".")[2].removeprefix("header:"))))


def polarity(text: str) -> int:
    """Return 1 for a usual name of the positive class, -1 for one of the negative class, 0 for others."""
    word = text.strip().casefold()
    return 1 if word in POSITIVE else -1 if word in NEGATIVE else 0


def area_under_roc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Area under the ROC curve: share of pairs with the positive higher, ties half (Mann, Whitney 1947).

    Undefined without positives or negatives: raises ZeroDivisionError.
    """
    ordered = sorted([(number, 0) for number in negative] + [(number, 1) for number in positive])
    wins = 0.0
    below = at = 0
    while at < len(ordered):
        stop = at
        while stop < len(ordered) and ordered[stop][0] == ordered[at][0]:
            stop += 1
        ups = sum(side for _, side in ordered[at:stop])
        downs = stop - at - ups
        wins += ups * (below + downs / 2)
        below += downs
        at = stop
    return wins / (len(positive) * len(negative))


def printable(text: str) -> str:
    """Escape characters that are not printable, such as control characters in names of fields."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
