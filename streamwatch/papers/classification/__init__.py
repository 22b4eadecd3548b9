"""Classifiers on the testbed, beside what the paper prints of them."""
