"""The commands of `tidemill`, one file each."""
