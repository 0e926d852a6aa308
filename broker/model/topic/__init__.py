"""Topics: their producers, their subscriptions, and how they come to be."""
