"""Table 3 of Cervantes et al. as printed: errors of classifiers over 10,000 instances, percent.

Source: Cervantes, Gagné, Isasi, Parizeau, "Evaluating and characterizing incremental learning from
non-stationary data", Table 3 ("values are final AE_preq in %", means of ten streams each).
"""

from __future__ import annotations

from typing import Final

CLASSIFIERS: Final = ("NB", "SGD", "DWM", "OZAB", "NN100", "NN1500", "NN6000")
"""Columns, in the paper's order; that of the optimal classifier is each stream's `printed_optimal`."""
ERRORS: Final[dict[str, tuple[float, ...]]] = {
    "NSGT": (25.27, 7.68, 4.21, 4.20, 4.83, 6.77, 10.97),
    "NSGT-F": (41.73, 14.14, 6.90, 4.39, 4.77, 11.79, 12.04),
    "NSGR": (49.61, 0.04, 0.90, 0.54, 0.02, 0.02, 36.95),
    "NSLC": (6.44, 4.25, 4.91, 4.72, 6.19, 6.12, 7.77),
    "NSGT-I": (25.05, 8.02, 5.85, 4.48, 4.80, 9.58, 10.28),
    "NSPC": (5.94, 6.77, 6.24, 6.16, 9.00, 8.73, 8.90),
    "NSPC-A": (6.09, 5.89, 6.09, 5.98, 8.45, 8.28, 8.82),
    "NSGT-5D": (25.43, 9.35, 7.34, 7.63, 12.18, 11.16, 11.88),
    "NSCX": (14.28, 12.94, 6.90, 6.08, 6.47, 8.62, 10.19),
}
"""By stream; by classifier in the order of `CLASSIFIERS`."""
