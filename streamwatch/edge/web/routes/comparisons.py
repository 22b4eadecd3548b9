"""Routes of comparisons of two models on the same ids, and of models that predict in folds.

`GET /api/v1/comparisons`::

    {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999", "rule": "better: …",
     "comparisons": [{"champion": "fraud-v3", "challenger": "fraud-v4", "pairs": 1200,
                      "last_pair_timestamp_seconds": 1759999990.0,
                      "basis": "labels", "verdict": "better", "verdict_since_timestamp_seconds": 1759990000.0,
                      "verdict_since_pair": 17, "lead": 0.06, "lead_lower": 0.03, "lead_upper": 0.09,
                      "evidence": {"better": 0.0, "worse": 0.0}, "lead_dispersion": 1.1,
                      "measures": {"landmark": {"q": 0.31, "mcnemar": 21.4, "mcnemar_calibrated": 21.4,
                                                "champion_error_ratio": 0.2, "challenger_error_ratio": 0.14,
                                                "champion_right_alone": 20, "challenger_right_alone": 90,
                                                "effective_sample_size": 1200}}}]}

Sorted by champion, then by lead, the largest first. Positive numbers favour the challenger. Where labels are
late, verdict, evidence and lead are by cohorts of prediction time (`basis`) once enough cohorts are judged,
and those in the order of labels are under `labels`; until then the verdict is `provisional`. Q and McNemar's
statistic are descriptive: if watched continuously they exceed any level sooner or later, which the verdict
does not. Undefined values are absent. `forgetting` is the one that the page shows first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from streamwatch.core.estimators.registers.fleet import RULE as WORSE_RULE
from streamwatch.core.estimators.registers.fleet import SHARE, VERDICT_WORDS, Listed, worse_pairs
from streamwatch.core.metrics.series import Family, Histogram, with_parts
from streamwatch.edge.web.documents import (
    Comparison,
    Comparisons,
    ComparisonVerdict,
    Folds,
    Worse,
    WorseModel,
)
from streamwatch.edge.web.ports import Asked, Query, Route, encode, named, number
from streamwatch.edge.web.routes.json_api import COMPARISON_NAMES
from streamwatch.edge.web.routes.overview import main_forgetting

RULE = (
    "better or worse: currently, of the challenger beside the champion on the same ids, by the utility that "
    "monitors.utility sets for the champion; open: neither is shown. If losses do not "
    "depend on earlier ones, and the distribution of delays stays the same (basis cohorts) or delays do not "
    "depend on which model is right (basis labels), a comparison's verdict is false within "
    "monitors.verdict_outcomes pairs with probability monitors.confidence_delta at most, however often one "
    "looks. Where the champion is judged by "
    "the balanced utility, the basis is always labels, and labels that are late in a biased way can falsify "
    "the verdict"
)
_PREFIX = "comparison_"
_OF_COHORTS = "cohort_"
_JUDGED = (
    *("verdict", "verdict_since_timestamp_seconds", "verdict_since_pair"),
    *("verdict_earliest_timestamp_seconds", "verdict_latest_timestamp_seconds"),
    *("lead", "lead_lower", "lead_upper", "lead_dispersion", "evidence"),
)
"""Fields that verdicts in the order of labels and by cohorts both have."""


class ComparisonsExporter:
    """Exporter of `/api/v1/comparisons`."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/comparisons", "Every comparison of two models on the same ids", "Comparisons", "models"
        ),
    )

    def render(self, asked: Asked) -> bytes:
        """Render every comparison."""
        compared = cast("list[Comparison]", comparisons_of(asked.families))
        return encode(Comparisons(asked.published, shown_forgetting(asked.families), RULE, compared))


class ComparisonVerdictExporter:
    """Exporter of `/api/v1/comparisons/{champion}/{challenger}/verdict`, for decisions on a promotion.

    Names are percent-encoded; 404 for two models that are not compared.
    """

    routes: Sequence[Route] = (
        Route(
            "/api/v1/comparisons/{champion}/{challenger}/verdict",
            "One comparison, as a basis for replacing the champion by the challenger",
            "ComparisonVerdict",
            "models",
        ),
    )

    def render(self, asked: Asked) -> bytes | None:
        """Render the comparison; None where the two are not compared."""
        compared = comparisons_of(asked.families)
        names = {str(each[side]) for each in compared for side in ("champion", "challenger")}
        pair = tuple(named(asked.values[side], lambda: names) for side in ("champion", "challenger"))
        found = next((each for each in compared if (each["champion"], each["challenger"]) == pair), None)
        if found is None:
            return None
        return encode(ComparisonVerdict(asked.published, RULE, cast("Comparison", found)))


def comparisons_of(families: Iterable[Family]) -> list[dict[str, object]]:
    """Make the documents of all comparisons in a report, sorted by champion, the largest lead first."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    for family in families:
        if family.name not in COMPARISON_NAMES:
            continue
        name = family.name.removeprefix(_PREFIX).removesuffix("_total")
        label = family.labels[2] if len(family.labels) > 2 else None
        by_cohorts = name.startswith(_OF_COHORTS)
        name = name.removeprefix(_OF_COHORTS)
        for (challenger, champion, *more), value in family.samples:
            if isinstance(value, Histogram) or math.isnan(value):
                continue
            document = found.setdefault(
                (champion, challenger), {"champion": champion, "challenger": challenger}
            )
            if by_cohorts:
                document = document.setdefault("cohorts", {})
                assert isinstance(document, dict)  # noqa: S101 - made so above
            if label is None:
                document[name] = number(value)
                continue
            branch = document.setdefault("evidence" if label == "side" else "measures", {})
            assert isinstance(branch, dict)  # noqa: S101 - made so above
            if label == "side":
                branch[more[0]] = number(value)
            else:
                branch.setdefault(more[0], {})[name] = number(value)
    for document in found.values():
        document.setdefault("measures", {})
        document.setdefault("evidence", {})
        _judge(document, cast("dict[str, object]", document.pop("cohorts", {})))
    return sorted(found.values(), key=_order)


def _judge(document: dict[str, Any], cohorts: dict[str, Any]) -> None:
    """Put the verdict by cohorts into a document, if there is one, and move the other under `labels`."""
    document["verdict"] = VERDICT_WORDS[int(document.get("verdict", 0))]
    document["basis"] = "labels"
    if "headline" not in cohorts:
        if cohorts:
            document["provisional"] = True
        return
    by_labels = {name: document.pop(name) for name in _JUDGED if name in document}
    verdict = int(cohorts["headline"])
    document |= {name: cohorts[name] for name in _JUDGED if name in cohorts}
    document["basis"], document["verdict"], document["labels"] = "cohorts", VERDICT_WORDS[verdict], by_labels
    document["retracted"] = cohorts.get("verdict_retracted", 0)
    if "age_seconds" in cohorts:
        document["age_seconds"] = cohorts["age_seconds"]
    if verdict:
        document["status"] = "confirmed" if cohorts.get("verdict_confirmed") else "early"


def shown_forgetting(families: Iterable[Family]) -> str | None:
    """Return the forgetting that is shown first: a fading one, if there is one; None without any."""
    errors = next((f for f in families if f.name == "comparison_champion_error_ratio"), None)
    return main_forgetting(errors)


def _order(document: Mapping[str, object]) -> tuple[str, float, str]:
    lead = document.get("lead")
    least = -lead if isinstance(lead, int | float) else 2.0  # comparisons without a lead are last
    return str(document["champion"]), least, str(document["challenger"])


# Models that predict in folds, compared over them, at the last report under one forgetting.
#
# `GET /api/v1/folds?forgetting=fading:0.999`::
#
# {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999", "mechanisms": ["landmark",
# "fading:0.999"], "accuracies": {"a": {"0": 0.91, "1": 0.9}, "b": {"0": 0.88, "1": 0.89}}, "models": {"a":
# {"folds": 2, "mean": 0.905, "deviation": 0.007}, "b": …}, "pairs": [{"first": "a", "second": "b", "folds":
# 2, "difference": 0.02, "sign": {"wins": 2, "losses": 0, "p": 0.5}, "wilcoxon": {"positive": 3.0,
# "negative": 0.0, "p": 0.5}}], "ranks": null, "left_out": 0}
#
# `ranks` has Friedman's test, Nemenyi's critical difference and its `diagram` (SVG), for three or more
# models. p-values are exact, two-sided, and valid for a single look; undefined values are absent. Under a
# forgetting that is none of `mechanisms`, no model has an accuracy.


class FoldsExporter:
    """Exporter of `/api/v1/folds`: tests over folds."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/folds",
            "Models that predict in folds, compared over them at the last report",
            "Folds",
            "models",
            (
                Query(
                    "forgetting",
                    ".{1,64}",
                    {"type": "string", "minLength": 1, "maxLength": 64},
                    "Accuracies under this forgetting; the first that fades, else the first, without it",
                ),
            ),
        ),
    )

    def render(self, asked: Asked) -> bytes:
        """Render every comparison under one forgetting; accuracies are absent if it is not configured."""
        # Imported here, because scipy.stats takes long to load and the route is rarely used.
        from streamwatch.core.estimators.folds import compared  # noqa: PLC0415

        found = _folds(asked.details)
        mechanisms = list(dict.fromkeys(name for folds in found.values() for name in folds))
        fading = next((name for name in mechanisms if name.startswith("fading:")), None)
        forgetting = asked.values.get("forgetting") or fading or next(iter(mechanisms), None)
        accuracies = {model: folds.get(forgetting or "", {}) for model, folds in found.items()}
        return encode(
            Folds(
                published_timestamp_seconds=asked.published,
                forgetting=forgetting,
                mechanisms=mechanisms,
                accuracies=accuracies,
                **cast("dict[str, Any]", compared(accuracies)),
            )
        )


def _folds(details: Mapping[str, Mapping[str, object]]) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """Return accuracies by model, mechanism and fold."""
    return {
        model: cast("Mapping[str, Mapping[str, float]]", shown["folds"])
        for model in sorted(details)
        if "folds" in (shown := with_parts(details, model, ()))
    }


# Route of the list of models that are worse than no change or the majority, with few false ones.
#
# `GET /api/v1/worse?share=0.05`::
#
#     {"published_timestamp_seconds": 1760000000.5, "share": 0.05, "pairs": 2000, "rule": "…",
#      "worse": [{"model": "fraud-v3", "opponent": "majority", "e_value": 81200.0, "verdict": "worse",
#                 "since_timestamp_seconds": 1759000000.0, "earliest_timestamp_seconds": 1758990000.0,
#                 "latest_timestamp_seconds": 1759010000.0}]}
#
# Sorted by e-value, the largest first. The time since when the verdict holds is present if the verdict is
# `worse` now. `core.estimators.registers.fleet` states what the list guarantees. `share` is .05 by default.
# All models that are judged by cohorts count, also without a headline.


Cohorts = Mapping[str, Mapping[str, Any]]
_BEGAN: Final = ("since_timestamp_seconds", "earliest_timestamp_seconds", "latest_timestamp_seconds")
"""Fields with the time since when a verdict holds, and its 80 % interval."""


class WorseExporter:
    """Exporter of `/api/v1/worse`."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/worse",
            "Models that are worse than no change or the majority, of which few are expected to be false",
            "Worse",
            "models",
            (
                Query(
                    "share",
                    r"0?\.(?!0+$)[0-9]{1,6}",
                    {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "exclusiveMaximum": 1,
                        "default": SHARE,
                    },
                    "Largest expected share of pairs listed falsely",
                ),
            ),
        ),
    )

    def render(self, asked: Asked) -> bytes:
        """Render the list of worse pairs."""
        share = float(asked.values.get("share", SHARE))
        judged = opponents_of(asked.details)
        number = sum(len(opponents) for opponents in judged.values())
        pairs = [
            Listed(model, name, one["e_value"])
            for model, opponents in judged.items()
            for name, one in opponents.items()
            if "e_value" in one
        ]
        worse = [
            _worse(pair, judged[pair.model][pair.opponent]) for pair in worse_pairs(pairs, number, share)
        ]
        return encode(Worse(asked.published, share, number, WORSE_RULE, worse))


def _worse(pair: Listed, cohorts: Mapping[str, Any]) -> WorseModel:
    """Make the document of a listed pair, with its verdict now, and since when it holds if it is worse."""
    verdict = cohorts.get("verdict", "open")
    began = {name: cohorts[name] for name in _BEGAN if verdict == "worse" and name in cohorts}
    return WorseModel(*pair, verdict, **began)


def opponents_of(details: Mapping[str, Mapping[str, object]]) -> Mapping[str, Cohorts]:
    """Return model → opponent → verdict, of the models that are judged by cohorts."""
    return {
        model: cast("Cohorts", cohorts["opponents"])
        for model in details
        if "headline" in (of_model := with_parts(details, model, ("cohorts",)))
        and isinstance(cohorts := of_model.get("cohorts"), Mapping)
    }
