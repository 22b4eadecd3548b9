"""Rules for whatever this process connects to: names, and addresses that are never spoken to."""
