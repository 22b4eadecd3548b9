"""Exporters of reports, by subject: Prometheus text, JSON documents, the stream of events.

An exporter has `routes`, `render` (report → bytes, or None for 404) and, if its answers have several media
types, `media_type`: see `Exporter` and `ChoosesMediaType` in `ports`.
"""
