"""One file a step. A step describes its tables itself: what the program calls them later must not
change what the step did."""
