"""Values that a join writes at commits, and the restore from them."""
