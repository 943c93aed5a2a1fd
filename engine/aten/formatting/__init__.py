"""Values as text, as programs print them, and their hashes."""
