"""Verdicts on challengers by cohorts of prediction time, valid even if labels are late in a biased way.

Both models of a pair get its label at the same time, so a delay that depends on the outcome biases their
comparison as it biases that of a model with no change. Therefore pairs are counted in the cohorts of
`registers.cohorts`: a pair as an outcome of the challenger, with the champion's class as the opponent's. The
*kind* of a pair is what its delay may depend on.

By accuracy, the kind is the true class and which of the two models alone is right. By costs, two wrong
classes may differ in cost: the kind is the true class, whether one of the two models is right, and the sign
of the lead. Pairs without a lead are no evidence, and nothing is learned from their delays.

Of the predictions that each model made since the first pair, the smaller number is taken as the number made,
and the predictions of a cohort are those by which it grew.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.cohorts import CLASSES, CohortsSpec, bytes_of
from streamwatch.core.estimators.registers.cohorts.counting import BACKWARD
from streamwatch.core.estimators.registers.cohorts.readout import CohortVerdicts
from streamwatch.core.estimators.registers.cohorts.register import Cohorts
from streamwatch.core.jit import entry, inner
from streamwatch.core.records.events import Name, model_of
from streamwatch.core.records.outcomes import NO_OUTCOMES, OutcomeBatch, Pairs
from streamwatch.core.specs import first_utility

COUNTED: Final = np.dtype(
    [
        ("pairs", "i8"),
        ("champion", "u4"),  # predictions made, as of the last pair (`Outcome.made`)
        ("challenger", "u4"),
        ("by_champion", "i8"),  # the same since the first pair
        ("by_challenger", "i8"),
    ]
)
"""Numbers of predictions that the two models of a comparison have made."""

_COLUMNS: Final = ("rows", "true_class", "predicted_class", "label_at_prediction", "assumed", "made")
_encode = msgspec.msgpack.Encoder().encode


class _Neither(msgspec.Struct, frozen=True, array_like=True):
    """Kind, without its sign, of pairs for which the models predicted different wrong classes."""

    true_class: Name


_Kind = Name | _Neither
"""Kind of a pair, without its sign: the true class, except where `_Neither` applies (by costs only)."""
_Counted = Annotated[bytes, msgspec.Meta(min_length=COUNTED.itemsize, max_length=COUNTED.itemsize)]
_Kinds = Annotated[list[_Kind], msgspec.Meta(max_length=CLASSES - 1)]
_DECODER: Final = msgspec.msgpack.Decoder(tuple[bytes, _Counted, _Kinds])


@inner
def more_made(last, made, backward):
    """Return `made` − `last`, counts modulo 2³²; 0 for a difference of at least `backward`, a step back."""
    more = (np.int64(made) - np.int64(last)) & 0xFFFFFFFF
    return more if more < backward else 0


@entry
def lay_out_pairs(
    records, pairs, codes, rows, judged, costed, counted, numbers, backward, indices, size, columns, times
):
    """Write pairs as outcomes of challengers; return how many there are.

    Parameters
    ----------
    records, pairs, codes
        As `observe.lay_out` takes them.
    rows
        int64 (n,): row of each pair's comparison.
    judged
        bool by row: whether the comparison has verdicts by cohorts.
    costed
        bool by row: whether it is judged by costs.
    counted
        `COUNTED` by row, changed.
    numbers
        int8 by row and 2·(number of the true class in the batch), plus 1 if the comparison is judged by
        costs and the models predicted different wrong classes: number of the pair's kind, without its sign.
    backward
        Least difference of two counts of predictions, modulo 2³², that is a step back.
    indices
        int32 (n, 3): true class, answer of the challenger and answer of the champion in the table of costs;
        read where a pair is judged by costs.
    size
        Number of classes in the table of costs.
    columns, times
        int64 (6, n) and (2, n), output: columns of a `Batch`, `_COLUMNS`, and `resolved_ms` and `waited_ms`.
    """
    count = 0
    for i in range(pairs.shape[0]):
        row = rows[i]
        if not judged[row]:
            continue
        outcome = records[pairs[i, 0]]
        c = counted[row]
        own_right = outcome.predicted_class == outcome.true_class
        partner_right = pairs[i, 2] == outcome.true_class
        own_made, partner_made = np.uint32(outcome.made), np.uint32(pairs[i, 3])
        champion_right, challenger_right = own_right, partner_right
        champion_made, challenger_made = own_made, partner_made
        if codes[i] & 1:
            champion_right, challenger_right = partner_right, own_right
            champion_made, challenger_made = partner_made, own_made
        if c.pairs > 0:
            c.by_champion += more_made(c.champion, champion_made, backward)
            c.by_challenger += more_made(c.challenger, challenger_made, backward)
        c.pairs += 1
        c.champion = champion_made
        c.challenger = challenger_made
        neither = not own_right and not partner_right and outcome.predicted_class != pairs[i, 2]
        k = np.int64(numbers[row, 2 * outcome.true_class + (neither and costed[row])])
        columns[0, count] = row
        columns[1, count] = k
        columns[2, count] = k if challenger_right else k + 1
        columns[3, count] = k if champion_right else k + 1
        if costed[row]:
            columns[2, count] = indices[i, 0] * size + indices[i, 1]
            columns[3, count] = indices[i, 2]
        columns[4, count] = outcome.assumed
        columns[5, count] = min(c.by_champion, c.by_challenger) & 0xFFFFFFFF
        times[0, count] = outcome.resolved_ms
        times[1, count] = outcome.waited_ms
        count += 1
    return count


class PairCohorts:
    """Verdicts by cohorts on the challengers of all comparisons, by row of the comparison; O(1) per pair."""

    def __init__(self, spec: CohortsSpec, capacity: int) -> None:
        self._spec = spec
        self._register = Cohorts(replace(spec, of_pairs=True, max_classes=CLASSES), capacity)
        self._judged = np.zeros(capacity, np.bool_)
        self._costed = np.zeros(capacity, np.bool_)
        self._counted = np.zeros(capacity, COUNTED)
        self._kinds: list[list[_Kind]] = [[] for _ in range(capacity)]
        """Kinds that have a number of their own, by row; the number is the position in the list."""
        self._names: Sequence[str] = ()
        """Names of the classes, by the class numbers that index `_numbers`."""
        self._numbers = np.full((capacity, 0), -1, np.int8)
        self.section = self._register.section
        self.title = "verdicts of comparisons by cohorts"

    def add(self, row: int, champion: str) -> None:
        """Begin a comparison in an empty row; it has a verdict by cohorts if its champion may have one."""
        self._judged[row] = self._spec.gives_headline(champion)
        utility = first_utility(self._spec.utilities, model_of(champion))
        self._costed[row] = self._judged[row] and utility.kind == "costs"
        if self._costed[row]:
            self._register.name_classes(row, utility, ())

    def remove(self, row: int) -> None:
        """Clear a row."""
        self._register.clear(row)
        self._judged[row] = False
        self._costed[row] = False
        self._counted[row] = np.zeros((), COUNTED)
        self._kinds[row] = []
        self._numbers[row] = -1

    def fold(
        self,
        batch: OutcomeBatch,
        pairs: Pairs,
        codes: NDArray[np.int64],
        rows: NDArray[np.int64],
        indices: NDArray[np.int32],
    ) -> None:
        """Evaluate pairs in order; arrays as `lay_out_pairs` takes them."""
        self._number(batch, pairs, rows)
        columns, times = np.empty((len(_COLUMNS), len(pairs)), np.int64), np.empty((2, len(pairs)), np.int64)
        count = lay_out_pairs(
            batch.records,
            pairs,
            codes,
            rows,
            self._judged,
            self._costed,
            self._counted,
            self._numbers,
            BACKWARD,
            indices,
            self._register.state.costs.shape[1],
            columns,
            times,
        )
        if count:
            self._register.observe(_batch(columns[:, :count], times[:, :count]))

    def _number(self, batch: OutcomeBatch, pairs: Pairs, rows: NDArray[np.int64]) -> None:
        """Number the kinds of pairs: of each comparison, all kinds after the first seven share one number."""
        classes = batch.classes
        if self._names is not classes:
            self._names = classes
            self._numbers = np.full((len(self._judged), 0), -1, np.int8)
        if 2 * len(classes) > self._numbers.shape[1]:
            larger = np.full((len(self._judged), 4 * len(classes)), -1, np.int8)
            larger[:, : self._numbers.shape[1]] = self._numbers
            self._numbers = larger
        kinds = 2 * batch.records["true_class"][pairs[:, 0]]
        if self._costed.any():
            label, one, other = kinds // 2, batch.records["predicted_class"][pairs[:, 0]], pairs[:, 2]
            kinds += self._costed[rows] & (one != label) & (other != label) & (one != other)
        fresh = np.flatnonzero(self._numbers[rows, kinds] < 0)
        for row, number in dict.fromkeys(zip(rows[fresh].tolist(), kinds[fresh].tolist(), strict=True)):
            name = classes[int(number) // 2]
            own, kind = self._kinds[row], _Neither(name) if number % 2 else name
            if kind not in own and len(own) < CLASSES - 1:
                own.append(kind)
            self._numbers[row, number] = own.index(kind) if kind in own else CLASSES - 1

    def are_judged(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mark the rows that have verdicts by cohorts."""
        return self._judged[rows]

    def read(self, rows: NDArray[np.int64]) -> CohortVerdicts:
        """Read the verdicts of some rows; column 0 of each array is the challenger's against the champion."""
        return self._register.read(rows.tolist())

    def snapshots(self, rows: Sequence[int]) -> list[dict[str, bytes]]:
        """Encode the states of some rows, each as {section name: bytes}; empty for a row without state."""
        encoded = self._register.snapshots(np.array(rows, np.int64))
        return [
            {self.section: _encode((body, self._counted[row].tobytes(), self._kinds[row]))} if body else {}
            for row, body in zip(rows, encoded, strict=True)
        ]

    def restore(self, row: int, state: bytes) -> None:
        """Set an empty row to a snapshot.

        It stays empty if it has no verdict by cohorts, or the snapshot was judged by another utility.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot.
        """
        if not self._judged[row]:
            return
        body, counted, kinds = _DECODER.decode(state)
        self._register.restore(row, body)
        if not self._register.state.models["observed"][row]:
            return
        self._counted[row] = np.frombuffer(counted, COUNTED)[0]
        self._kinds[row] = kinds
        self._names = ()


def _batch(columns: NDArray[np.int64], times: NDArray[np.int64]) -> Batch:
    """Convert columns and times of `lay_out_pairs` to a batch of outcomes for the register."""
    narrow: list[Any] = [column.astype(np.int32) for column in columns[:4]]
    rows, true_class, predicted, known = narrow
    assumed, made = columns[4].astype(np.bool_), columns[5].astype(np.uint32)
    return Batch(NO_OUTCOMES, rows, true_class, predicted, known, times[0], times[1], assumed, made, *times)


def pair_cohort_bytes(spec: CohortsSpec) -> int:
    """Memory of the cohorts of one comparison in bytes."""
    return bytes_of(CLASSES, by_costs=bool(spec.cost_utilities())) + COUNTED.itemsize
