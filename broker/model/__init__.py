"""The nouns: ledgers, cursors, subscriptions, topics. No sockets, no frames."""
