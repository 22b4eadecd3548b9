"""Rule by which one of several replicas notifies; events and the time are given to it."""
