"""The WebSocket scenarios, recorded and played again."""
