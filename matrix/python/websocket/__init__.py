"""The scenario program of websocket-client, a WebSocket library for Python."""
