"""Rate limits of publishing, dispatch and subscribing."""
