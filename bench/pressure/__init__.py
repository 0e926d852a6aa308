"""What one client's load or one piece of work costs everybody else on the same broker."""
