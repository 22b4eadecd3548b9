"""Beside the daemon: synthetic streams, an embedded broker, replay of recorded events, the demo."""
