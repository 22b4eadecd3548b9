"""State row by row: chains of entries by id, deadlines, generations of dedup entries."""
