"""The join as one compiled loop over a hash table of 64-byte entries; the same rules as row by row."""
