"""Bytes that a broker sends → rows of records: batches, codecs, faults, older formats."""
