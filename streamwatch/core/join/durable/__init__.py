"""What a join writes at commits, and how it is read back."""
