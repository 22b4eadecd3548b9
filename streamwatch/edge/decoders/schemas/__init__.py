"""Schemas that records are written with: fetched from a registry by name, and compiled to readers."""
