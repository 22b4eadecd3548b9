"""Scores of detectors on streams with known changes."""
