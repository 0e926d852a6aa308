"""The scenario program of Pulsarium's own client, under trio."""
