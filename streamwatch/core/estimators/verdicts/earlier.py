"""Records of verdicts as version 2 wrote them, and the record that goes on from one.

Version 2 counted a block of 16 at its last step; now the blocks of 16 are counted with their block of 64. So
a record of version 2 taken within a block of 64 has counted up to three blocks that will be counted again:
what they added to m, x̄ and the faded sums is taken out first. The sums of the first two of three such blocks
are known only together and are taken to be equal; apart from that the record goes on as if it had always been
of this version.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.verdicts.dispersion import (
    ALPHA,
    BLOCK_FADES,
    BLOCK_WEIGHT,
    BOUND,
    LEAST_BLOCKS,
)
from streamwatch.core.estimators.verdicts.state import BLOCKS, VERDICT

EARLIER_VERSION = 2


def _earlier_fields() -> list[Any]:
    fields: list[Any] = []
    for name, kind, *shape in VERDICT.descr:
        if name == "recent":
            fields.append(("block", "<f8"))  # Σ d of the current block of 16
        if name == "parts":
            fields.append(("longer", "<f8", (2,)))  # Σ d of the current 64 and 256, in whole 16s and 64s
        elif name not in {"whole", "better", "worse"}:
            fields.append((name, kind, *shape))
    return fields


EARLIER_VERDICT = np.dtype(_earlier_fields())
"""Record of version 2: `recent`, `total`, `squares` and `weight` were as of the last block of 16."""


def continued(steps: int, earlier: NDArray[np.void]) -> NDArray[np.void]:
    """Convert a record of version 2, shape (), that has taken this number of steps."""
    record = np.zeros((), VERDICT)
    for name in set(VERDICT.names or ()) & set(EARLIER_VERDICT.names or ()):
        record[name] = earlier[name]
    counted = steps % BLOCKS[1] // BLOCKS[0]
    ahead = BLOCKS[1] - counted * BLOCKS[0]  # steps from the last block of 16 to the end of its 64
    for name, recent in (("total", "recent"), ("squares", "recent_squares")):
        moved = earlier[name] * (ALPHA**ahead - BLOCK_FADES[1])
        record[recent] = earlier[recent] * ALPHA ** (ahead - BLOCKS[0]) + moved
    by_then = earlier["weight"] * ALPHA**ahead + (ALPHA ** np.arange(ahead)).sum()
    record["weight"] = (by_then - BLOCK_WEIGHT) / BLOCK_FADES[1]
    record["whole"] = earlier["longer"][1]
    record["parts"][counted] = earlier["block"]
    if counted:
        _uncount(steps, record, earlier, counted)
    return record


def _uncount(steps: int, record: NDArray[np.void], earlier: NDArray[np.void], counted: int) -> None:
    """Take the first `counted` blocks of 16 of the current 64 out of m and x̄ of their length."""
    sums = np.full(counted, earlier["last"][0])
    sums[:-1] = (earlier["longer"][0] - sums[-1]) / max(counted - 1, 1)
    record["parts"][:counted] = sums
    record["last"][0] = sums[0]
    m, spread = float(earlier["weights"][0]), float(earlier["spreads"][0])
    first_ever = steps < BLOCKS[1]  # the first block of all has none before it to differ from
    differences = np.diff(sums, prepend=sums[:1])[int(first_ever) :]
    for change in reversed(differences):
        x = 0.5 * change * change
        before = max(m - 1.0, 0.0) / BLOCK_FADES[0]
        if before >= LEAST_BLOCKS:
            x = min(x, BOUND * max(spread / m, BLOCKS[0] * float(earlier["variance"])))
        m, spread = before, max(spread - x, 0.0) / BLOCK_FADES[0]
    record["weights"][0], record["spreads"][0] = m, spread
