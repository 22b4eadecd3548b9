"""Errors of classifiers on the testbed, compared with the paper's."""
