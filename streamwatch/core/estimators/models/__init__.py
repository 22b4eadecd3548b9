"""Rows of models in the table: their numbers, found by name or by column, and their snapshots."""
