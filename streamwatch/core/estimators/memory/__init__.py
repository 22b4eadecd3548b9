"""Memory the compiled estimators share: flags and rings of outcomes, totals, spans and blocks of counts."""
