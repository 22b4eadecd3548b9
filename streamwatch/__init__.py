"""Is a deployed classifier still better than guessing what came last, and since when not."""

__version__ = "0.1.0"
