"""Compiled join: one loop over a hash table of 64-byte entries, with the same rules as the row-wise join."""
