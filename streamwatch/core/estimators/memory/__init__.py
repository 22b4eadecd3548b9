"""Memory layout shared by the compiled estimators: flags and rings of outcomes, totals, pool allocator."""
