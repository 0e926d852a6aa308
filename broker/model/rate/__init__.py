"""Rate limits of publishing, dispatch and subscribing (B-42)."""
