"""Where reading stands in every partition, and whether the logs are still those in which it stands there."""
