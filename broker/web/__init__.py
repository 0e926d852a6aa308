"""The HTTP side of a broker: admin API, console, WebSocket API, the lab over REST, and Toxiproxy's API."""
