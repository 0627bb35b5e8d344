"""The commands of `tidemill`, a file each."""
