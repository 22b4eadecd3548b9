"""Seeded streams: what `simulate` and `demo` send, and those on which the literature tries its methods."""
