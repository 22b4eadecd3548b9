"""The daemon's core run over recordings (`streamwatch replay`), and what came of it."""
