"""What a changed declaration may do with what is committed, and what somebody must decide first."""
