"""Looks at Kafka from outside a run: what can be reached and read, and a sample of it."""
