"""One self-contained page of a replay or of a running daemon (`streamwatch report`)."""
