"""Caveats beside a verdict: only quick labels are in yet, missing labels count as a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamwatch.core.join.models import ModelActivity
from streamwatch.core.series import detail_at
from streamwatch.core.specs import JoinSpec


@dataclass(frozen=True, slots=True)
class Caveats:
    """Caveats on everything that is said of one model.

    Attributes
    ----------
    horizon_ends_ms
        Clock at which its first prediction is one horizon old; None once that is past. Until then labels that
        take longer than the model has been watched are missing, and if errors are labelled sooner or later
        than hits, it looks worse or better than it is.
    predictions, labelled
        Predictions taken in so far, and those of them that have met their label; told until then.
    assumed_class
        Class that a prediction counts as when it expires without a label; None where it is discarded.
    """

    horizon_ends_ms: int | None = None
    assumed_class: str | None = None
    predictions: int = 0
    labelled: int = 0


def caveats(models: Mapping[str, ModelActivity], spec: JoinSpec, clock_ms: int) -> dict[str, Caveats]:
    """Return the caveats of each model that has any, by name."""
    found: dict[str, Caveats] = {}
    for name, activity in sorted(models.items()):
        ends_ms = activity.first_ms + spec.horizon_ms
        horizon_ends_ms = ends_ms if clock_ms < ends_ms else None
        if horizon_ends_ms is not None or spec.assume is not None:
            counts = (0, 0) if horizon_ends_ms is None else (activity.accepted, activity.joined)
            found[name] = Caveats(horizon_ends_ms, spec.assume, *counts)
    return found


def details_with_caveats(
    details: Mapping[str, Mapping[str, object]], found: Mapping[str, Caveats]
) -> dict[str, Mapping[str, object]]:
    """Add caveats to what the API shows of models beside numbers, also of models without outcomes."""
    return {
        model: {
            **details.get(model, {}),
            **_fields(found.get(model, Caveats()), details.get(model, {}).get("confusion")),
        }
        for model in (*details, *(name for name in found if name not in details))
    }


def _fields(caveat: Caveats, confusion: object) -> dict[str, object]:
    fields: dict[str, object] = {}
    if caveat.horizon_ends_ms is not None:
        fields["first_horizon_ends_timestamp_seconds"] = caveat.horizon_ends_ms / 1000.0
        fields["first_horizon_predictions"] = caveat.predictions
        fields["first_horizon_labelled"] = caveat.labelled
        if (only := _only_label(confusion)) is not None:
            fields["first_horizon_only_label"] = only
    if caveat.assumed_class is not None:
        fields["labels_assumed_as"] = caveat.assumed_class
    return fields


def _only_label(confusion: object) -> str | None:
    """Find the one class that all labels are of, in a confusion matrix; None with several or without one."""
    classes, counts = detail_at(confusion, "classes"), detail_at(confusion, "counts")
    if not isinstance(classes, list | tuple) or not isinstance(counts, list | tuple):
        return None
    labelled = [str(name) for name, row in zip(classes, counts, strict=False) if any(row)]
    return labelled[0] if len(labelled) == 1 else None
