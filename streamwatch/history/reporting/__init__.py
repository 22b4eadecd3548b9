"""Reports of a replay or of a running daemon, as one page."""
