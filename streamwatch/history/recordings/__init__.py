"""Recordings: files of records as they would be in topics."""
