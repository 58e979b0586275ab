"""What `downburst analyze` shows: quantities as people write them, tables, one document, a page with plots."""
