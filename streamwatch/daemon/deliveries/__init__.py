"""Delivery of notifications to receivers, apart from reading."""
