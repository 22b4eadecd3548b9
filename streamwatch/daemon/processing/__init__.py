"""What polls deliver on its way through merge, join and estimators into the state."""
