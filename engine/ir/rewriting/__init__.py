"""Parts that several passes are made of, one change to graphs a file."""
