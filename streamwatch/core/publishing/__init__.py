"""Outcomes and events for Kafka topics: written as JSON, numbered, and kept in the state until sent."""
