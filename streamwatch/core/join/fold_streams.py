"""Previous labels of models whose folds test some ids only.

If a fold with every tenth outcome took its own previous label, labels would seem less persistent than they
are. So y_{t−1} of an outcome is the label of the previous distinct id resolved by any fold of its model, and
every fold's outcome has it in place of the label known at the prediction.
"""

from __future__ import annotations

import msgspec

from streamwatch.core.records.events import Name


class Stream(msgspec.Struct, array_like=True):
    """Latest state of a model's stream of resolved ids."""

    id: Name
    """The id resolved last."""
    label: Name
    """Its label."""
    before: Name | None
    """The label of the previous distinct id; None at the stream's beginning."""
