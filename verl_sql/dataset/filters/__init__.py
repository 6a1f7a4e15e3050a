"""Filters: one file a kind of fault; each gives `Finding`s and decides nothing."""
