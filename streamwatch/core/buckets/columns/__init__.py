"""Buckets in columns, where the compiled join suffices: the same contract, state and numbers."""
