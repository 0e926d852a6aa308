"""Wire captures as tables: frames, exchanges and violations."""
