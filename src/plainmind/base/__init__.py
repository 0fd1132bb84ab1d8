"""What every other package stands on: values, patterns, the values that travel, every error a user can meet."""
