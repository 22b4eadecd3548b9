"""Formats of record values: one file per format."""
