"""Recorded lines as events of partitions."""
