"""Accuracy, delays and drift by the time of the prediction, where labels come late and some kinds later."""
