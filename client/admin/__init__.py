"""The admin client: what may be asked of a broker over HTTP."""
