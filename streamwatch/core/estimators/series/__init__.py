"""Values of all estimators: a report of series for exporters, and a trace with a row per outcome."""
