"""The code of archives: graphs to Python text and back."""
