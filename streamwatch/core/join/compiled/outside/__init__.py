"""Entries outside the table of a compiled join: which leave it, come back, and are guests during a batch.

The entries themselves are stored in `cold`. A join whose table has no limit has none of this and no cost for
it.
"""
