"""What the pages take from the code and from result files, so that they cannot grow old."""
