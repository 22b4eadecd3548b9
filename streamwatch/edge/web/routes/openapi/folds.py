"""Shapes of what is answered about models in folds."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.parts import (
    FOLD_ACCURACIES,
    FORGETTING,
    NAMES,
    PUBLISHED,
    Schema,
    lead,
    object_of,
    ratio,
    ref,
)


def fold_schemas() -> Schema:
    """Accuracy over folds, and tests over them."""
    return {
        "Folds": object_of(
            {
                "published_timestamp_seconds": PUBLISHED,
                "forgetting": FORGETTING,
                "mechanisms": NAMES,
                "accuracies": {**FOLD_ACCURACIES, "description": "Accuracy by model and fold"},
                "models": {"type": "object", "additionalProperties": ref("FoldSpread")},
                "pairs": {"type": "array", "items": ref("FoldPair")},
                "ranks": {"oneOf": [ref("FoldRanks"), {"type": "null"}]},
                "left_out": {"type": "integer", "minimum": 0, "description": "Models not compared"},
            }
        ),
        "FoldSpread": object_of(
            {"folds": {"type": "integer", "minimum": 0}},
            mean=ratio("Mean accuracy over the folds"),
            deviation={"type": "number", "minimum": 0, "description": "Standard deviation, of n - 1"},
        ),
        "FoldPair": object_of(
            {
                "first": {"type": "string"},
                "second": {"type": "string"},
                "folds": {"type": "integer", "minimum": 2, "description": "Folds that both have"},
                "difference": lead("Mean accuracy of the first less that of the second"),
                "sign": object_of(
                    {"wins": {"type": "integer"}, "losses": {"type": "integer"}}, p=ratio("Two-sided, exact")
                ),
                "wilcoxon": object_of(
                    {"positive": {"type": "number"}, "negative": {"type": "number"}},
                    p=ratio("Two-sided, exact, ties included"),
                ),
            }
        ),
        "FoldRanks": object_of(
            {
                "folds": {"type": "integer", "minimum": 2, "description": "Folds that all models have"},
                "mean_ranks": {"type": "object", "additionalProperties": {"type": "number", "minimum": 1}},
                "alpha": ratio("Level of the critical difference"),
                "critical_difference": {"type": "number", "minimum": 0, "description": "Nemenyi's"},
                "diagram": {"type": "string", "description": "SVG of the ranks"},
            },
            statistic={"type": "number", "description": "Friedman's, corrected for ties"},
            p=ratio("Of Friedman's test"),
        ),
    }
