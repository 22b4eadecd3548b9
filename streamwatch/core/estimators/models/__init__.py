"""Index of models by name or column number: their rows and local class indices, and their snapshots."""
