"""What the compiled loop is told of a topic, as tuples of arrays; and the same without counted references.

Counting references is atomic: for arrays that are named in every record it took ten times what reading takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import hot, without_refcount
from streamwatch.edge.decoders.scanner.shape import Fields, Template, Trace
from streamwatch.edge.decoders.scanner.tokens import TokenTable


class Plan(NamedTuple):
    """Places of a topic's contents; a content is -1 where records do not carry it."""

    fields: Fields
    key: int
    """Content that is the record's key."""
    header_leaf: NDArray[np.int64]
    """By header wanted, like the following: the content that it is."""
    header_at: NDArray[np.int64]
    header_size: NDArray[np.int64]
    header_names: NDArray[np.uint8]
    id: NDArray[np.int64]
    """Contents that make the id: one, or several with `/` between them."""
    model: NDArray[np.int64]
    """Contents that name the model, in their order; none where the name is the same for all records."""
    prediction: int
    label: int
    timestamp: int
    kind: int
    segments: NDArray[np.int64]
    """Contents that are the values of segments of a prediction, in their order."""
    refused: NDArray[np.int64]
    """Contents with which a record is unusual."""
    model_number: int
    """Of a model that is the same for all records; else -1, like the two that follow."""
    prediction_number: int
    label_number: int
    side: int
    """What the topic carries; -1 where `kind` tells."""
    kind_text: NDArray[np.uint8]
    """The contents of `kind` for a prediction and for a label, behind one another."""
    kind_sizes: NDArray[np.int64]
    unit: int
    """Of timestamps."""
    prefix: NDArray[np.uint8]
    """What keys begin with, before the id."""


class Tables(NamedTuple):
    """Names met before. What several contents make has each as written, with `SEPARATOR` behind."""

    models: TokenTable
    predictions: TokenTable
    labels: TokenTable
    segments: TokenTable
    """1 + number, 0 without any."""


@hot
def _fields(fields: Fields) -> Fields:
    return Fields(
        without_refcount(fields.first),
        without_refcount(fields.at),
        without_refcount(fields.size),
        without_refcount(fields.word),
        without_refcount(fields.leaf),
        without_refcount(fields.node),
        without_refcount(fields.names),
    )


@hot
def borrowed_plan(plan: Plan) -> Plan:
    """The same, for as long as the caller holds it; so of the functions that follow."""
    return Plan(
        _fields(plan.fields),
        plan.key,
        without_refcount(plan.header_leaf),
        without_refcount(plan.header_at),
        without_refcount(plan.header_size),
        without_refcount(plan.header_names),
        without_refcount(plan.id),
        without_refcount(plan.model),
        plan.prediction,
        plan.label,
        plan.timestamp,
        plan.kind,
        without_refcount(plan.segments),
        without_refcount(plan.refused),
        plan.model_number,
        plan.prediction_number,
        plan.label_number,
        plan.side,
        without_refcount(plan.kind_text),
        without_refcount(plan.kind_sizes),
        plan.unit,
        without_refcount(plan.prefix),
    )


@hot
def borrowed_table(table: TokenTable) -> TokenTable:
    """As `borrowed_plan`."""
    return TokenTable(
        without_refcount(table.number),
        without_refcount(table.hash),
        without_refcount(table.start),
        without_refcount(table.size),
        without_refcount(table.text),
    )


@hot
def borrowed_trace(trace: Trace) -> Trace:
    """As above."""
    return Trace(
        without_refcount(trace.kind),
        without_refcount(trace.start),
        without_refcount(trace.stop),
        without_refcount(trace.scalars),
        without_refcount(trace.nodes),
    )


@hot
def borrowed_template(template: Template) -> Template:
    """As above."""
    return Template(
        without_refcount(template.text), without_refcount(template.pieces), without_refcount(template.state)
    )


@hot
def borrowed_tables(tables: Tables) -> Tables:
    """As above."""
    return Tables(
        borrowed_table(tables.models),
        borrowed_table(tables.predictions),
        borrowed_table(tables.labels),
        borrowed_table(tables.segments),
    )
