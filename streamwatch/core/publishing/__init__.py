"""Outcomes and events for Kafka topics: JSON, numbers, those that wait, and which replica may send them."""
