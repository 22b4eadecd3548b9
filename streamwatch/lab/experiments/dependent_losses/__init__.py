"""Detectors on losses that depend on those before, with and without a correction for it."""
