"""Streams of the literature whose drifts are known."""
