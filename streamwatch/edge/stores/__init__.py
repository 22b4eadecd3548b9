"""Where the join's records live between batches: one file per kind."""
