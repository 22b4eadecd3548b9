"""Models compared over folds: tests of significance, what is reported of them, and the diagram of ranks."""
