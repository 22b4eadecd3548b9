"""Reports on a replay or on a running daemon, as one page."""
