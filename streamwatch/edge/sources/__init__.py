"""Where records come from: one package or file per kind, each a `core.ports.Source`."""
