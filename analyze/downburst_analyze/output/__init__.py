"""Output of `downburst analyze`: readable quantities, tables, one document, a page with plots."""
