"""Information for notifications: names of alarms, current levels of models, and what changed."""
