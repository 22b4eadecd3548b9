"""Schemas that records are written with: named by the records, kept by a registry, compiled once."""
