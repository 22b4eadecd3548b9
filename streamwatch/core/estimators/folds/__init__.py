"""Models that predict in folds: their series, significance tests between them, and the diagram of ranks."""
