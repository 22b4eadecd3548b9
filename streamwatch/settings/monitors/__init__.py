"""The `monitors` section of the settings."""
