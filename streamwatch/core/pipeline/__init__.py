"""Records of the one sequence through join and estimators, and what commits keep of it."""
