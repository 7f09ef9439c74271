"""Reading: stored rows to experiences and evidence."""
