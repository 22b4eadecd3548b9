"""State in columns: cold runs, and how rows become columns."""
