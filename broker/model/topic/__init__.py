"""Topics: their producers and subscriptions, and how topics are found, loaded and deleted."""
