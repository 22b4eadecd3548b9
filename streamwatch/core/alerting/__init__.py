"""Alarms on their way to people: rules, open alarms, notifications and the outbox."""
