"""Composition root: the only package that knows both the settings and all classes.

Nothing is imported here, so that a command loads no more than the part it asks for: `checks` and `specs` load
neither the HTTP server nor the daemon.
"""
