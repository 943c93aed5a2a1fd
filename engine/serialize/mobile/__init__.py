"""Programs for mobile devices: `.ptl` files, whose instructions lie in a pickle or in a flatbuffer."""
