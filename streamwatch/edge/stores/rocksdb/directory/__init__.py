"""The directory: RocksDB in it, who has it open, of what version it is and how it is brought forward."""
