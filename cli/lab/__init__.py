"""`pulsarium fault`, `clock`, `capture`, `why`, `lint` ...: the lab of a running broker, over HTTP."""
