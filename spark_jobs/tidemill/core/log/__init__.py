"""What a log is to the rules: topic-partitions, offsets, ranges of them, and how an engine reads them."""
