"""Demo without Kafka: embedded broker, simulated models, and a narrator of the daemon's events."""
