"""From bytes to upright sRGB pictures, and from pictures to faces."""
