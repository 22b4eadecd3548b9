"""As far as `streamwatch.spark` uses it: types are checked where Spark is not installed, too."""
