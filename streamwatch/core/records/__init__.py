"""Records of the stream as values of the core: events, outcomes, and both in columns."""
