"""Event time: moments and durations, windows and the panes they are made of, watermarks."""
