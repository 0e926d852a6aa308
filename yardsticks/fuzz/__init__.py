"""Coverage-guided fuzzing of all code that takes bytes from unknown clients, and its corpus."""
