"""Faults of the data and of the machine, which raise; what a model wrote never does."""


class DatabaseNotFound(LookupError):
    """No database file is where it should be. The message names the file or what to set."""


class DatabaseUnusable(RuntimeError):
    """A database file cannot be read: corrupt, not SQLite, locked, or its WAL cannot be opened."""


class ExecutorError(RuntimeError):
    """The pool itself cannot work: its workers do not start, or it was closed."""
