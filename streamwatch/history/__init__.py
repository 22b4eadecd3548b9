"""What was recorded, evaluated as the daemon would: files, frames, reports, thresholds."""
