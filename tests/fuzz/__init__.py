"""Coverage-guided fuzzing of everything that takes bytes from strangers, and the corpus that it left."""
