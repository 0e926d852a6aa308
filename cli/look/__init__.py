"""Commands that show what a broker has: the answers of the routes of its console, in a terminal."""
