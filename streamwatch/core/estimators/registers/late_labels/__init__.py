"""Accuracy, label delays and error changes by the time of the prediction, corrected for late labels."""
