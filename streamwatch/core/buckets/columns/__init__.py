"""Buckets in columns, for settings for which the compiled join suffices; same contract and results."""
