"""More than one mapping of a topic, and records that a mapping is not for."""
