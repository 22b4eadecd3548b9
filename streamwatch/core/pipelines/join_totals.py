"""Totals of a compiled join in the state of a pipeline, which has the same form for both joins."""

from __future__ import annotations

from typing import Final

from streamwatch.core.join.compiled.durable.totals import JoinTotals
from streamwatch.core.join.mismatch import AgreementState
from streamwatch.core.join.reorder import OrderState
from streamwatch.core.pipelines.state import PipelineState

NOTHING_HELD: Final = OrderState([], [], (-1, -1), 0)
"""Order state of the row-wise join in every snapshot: empty."""


def state_of(
    totals: JoinTotals, clock_ms: int, agreement: AgreementState, predictions: dict[str, bytes]
) -> PipelineState:
    """Build the state of a pipeline from the totals of its join, and the state of everything else."""
    return PipelineState(
        clock_ms,
        totals.passed_ms,
        totals.counters,
        totals.join_models,
        totals.dedup,
        NOTHING_HELD,
        totals.early,
        totals.unmatched,
        totals.retained,
        totals.start_ms,
        totals.oldest_pending_ms,
        agreement,
        fold_streams=totals.fold_streams,
        pairing=totals.pairing,
        predictions=predictions,
        prediction_order=totals.order,
    )


def totals_of(state: PipelineState) -> JoinTotals:
    """Extract the totals of the join from the state of a pipeline."""
    return JoinTotals(
        state.passed_ms,
        state.counters,
        state.join_models,
        state.dedup,
        state.early,
        state.unmatched,
        state.retained,
        state.start_ms,
        state.oldest_pending_ms,
        state.prediction_order,
        state.clock_ms,
        state.pairing,
        state.fold_streams,
    )
