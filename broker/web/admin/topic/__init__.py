"""Topics, their subscriptions and their messages over REST."""
