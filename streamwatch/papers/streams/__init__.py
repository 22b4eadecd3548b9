"""Streams of the literature with known drifts."""
