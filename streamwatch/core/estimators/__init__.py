"""Estimators of every model: what forgets, what is measured, what raises alarms, and the compiled loop."""
