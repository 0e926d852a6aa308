"""The WebSocket API: producers, consumers and readers whose frames are JSON, on the HTTP port."""
