"""Machine code as files: objects linked into flat images, and images in memory."""
