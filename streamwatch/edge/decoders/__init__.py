"""What records mean: one file per format, each giving `core.ports.Decoder`s."""
