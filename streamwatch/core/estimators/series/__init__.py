"""All estimators as series: a report for exporters, and a trace with a row per outcome."""
