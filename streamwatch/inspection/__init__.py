"""Guesses of mappings from sampled records: which fields hold ids, predictions and labels; without I/O."""
