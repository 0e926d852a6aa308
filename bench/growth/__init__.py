"""The growth of the cost of a message with the number of topics, connections and consumers, and with the backlog."""
