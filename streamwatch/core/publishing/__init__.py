"""Outcomes and events for topics of their own: as JSON, numbered, and kept until they are there."""
