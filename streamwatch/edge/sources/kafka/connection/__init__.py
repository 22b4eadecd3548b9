"""One connection after another to Kafka: made, watched, given up and made anew."""
