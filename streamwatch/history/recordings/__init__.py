"""Recordings: files of records as topics would have carried them."""
