"""Seeded streams: what `simulate` and `demo` send, and the testbed of the literature."""
