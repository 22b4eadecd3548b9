"""Pipelines: join and evaluation of one sequence of records, event by event or in columns."""
