"""What a colleague would say who looks at a running daemon: one file per rule, each with its RULE."""
