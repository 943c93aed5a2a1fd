"""The zip file that an archive is: read without trust, written safely."""
