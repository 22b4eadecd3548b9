"""Operators' tools: check, capacity, and state shown, verified and transferred."""
