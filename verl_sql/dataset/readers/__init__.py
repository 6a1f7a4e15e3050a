"""Readers: one file a dataset; each yields `Example`s from the dataset's official files."""
