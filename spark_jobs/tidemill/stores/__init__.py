"""Files beside the tables: on this machine, or in a store of objects."""
