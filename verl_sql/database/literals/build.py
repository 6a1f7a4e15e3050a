"""Fill the index of a database's text values: one SQLite file with an FTS5 table, written by SQL alone.

A literal is a distinct text value of one column, up to LONGEST characters: what a condition may be written with. Its
words are indexed without case and accents, and once more with what joins words left out (`U.S.A.` as `USA`). The source
is attached for reading only, through the same URI as every guarded connection, so that building leaves no trace in it.
"""

import sqlite3
from pathlib import Path

from verl_sql.database.guard import Identity, read_only_uri
from verl_sql.database.introspect import quote_name

LONGEST = 200
"""Characters of the longest value that is indexed: longer ones are prose, which no condition quotes."""

_JOINERS = (" ", "-", ".", "'", "/", "_")
_TABLES = """
CREATE TABLE place (id INTEGER PRIMARY KEY, "table" TEXT, "column" TEXT);
CREATE TABLE literal (id INTEGER PRIMARY KEY, place INTEGER, value TEXT, n INTEGER);
CREATE VIRTUAL TABLE words USING fts5(value, joined, content='', tokenize='unicode61 remove_diacritics 2');
CREATE TABLE word (term TEXT PRIMARY KEY, doc INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row);
"""


def build_index(database: Path, identity: Identity, target: Path) -> int:
    """Write the index of `database` to a new file.

    Returns:
        The number of literals.

    Raises:
        sqlite3.Error: the database cannot be read, or the target not written.
    """
    connection = sqlite3.connect(f"file:{target}?mode=rwc", uri=True, isolation_level=None)
    try:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-64000", "temp_store=FILE"):
            connection.execute(f"PRAGMA {pragma}")
        connection.executescript(_TABLES)
        connection.execute("ATTACH ? AS source", (read_only_uri(str(database), identity),))
        connection.execute("BEGIN")
        for number, (table, column) in enumerate(_text_columns(connection), 1):
            connection.execute("INSERT INTO place VALUES (?, ?, ?)", (number, table, column))
            connection.execute(_values_of(table, column), (number,))
        connection.execute(f"INSERT INTO words (rowid, value, joined) SELECT id, value, {_joined()} FROM literal")
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.execute("INSERT INTO word SELECT term, doc FROM temp.vocabulary")
        (count,) = connection.execute("SELECT count(*) FROM literal").fetchone()
        connection.execute("COMMIT")
    finally:
        connection.close()
    return int(count)


def _text_columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Every column of the ordinary tables that may hold text; what a cell really holds is asked of each cell."""
    tables = connection.execute(
        "SELECT name FROM source.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid"
    ).fetchall()
    found = []
    for (table,) in tables:
        columns = connection.execute(f"PRAGMA source.table_xinfo({quote_name(table)})").fetchall()
        found += [(table, column[1]) for column in columns if column[6] != 1]
    return found


def _values_of(table: str, column: str) -> str:
    """The statement that copies the distinct text values of a column, and how often each occurs."""
    name = quote_name(column)
    return (
        f"INSERT INTO literal (place, value, n) SELECT ?, {name}, count(*) FROM source.{quote_name(table)} "
        f"WHERE typeof({name}) = 'text' AND length({name}) BETWEEN 1 AND {LONGEST} GROUP BY {name} COLLATE BINARY"
    )


def _joined() -> str:
    """The value without what joins its words; nothing where it has only one word."""
    bare = "value"
    for joiner in _JOINERS:
        bare = f"replace({bare}, '{joiner.replace(chr(39), chr(39) * 2)}', '')"
    return f"CASE WHEN {bare} <> value THEN {bare} END"
