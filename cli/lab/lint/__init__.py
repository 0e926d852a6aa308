"""`pulsarium lint`: what clients did wrong, in captures or on a running broker."""
