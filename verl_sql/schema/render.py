"""One door to every schema text: a database file in, prompt text out, in the form asked for."""

from enum import StrEnum
from pathlib import Path

from verl_sql.database.introspect import DatabaseSchema, open_for_reading, schema_of
from verl_sql.schema.compact import render_compact
from verl_sql.schema.ddl import render_ddl
from verl_sql.schema.descriptions import Descriptions, load_descriptions
from verl_sql.schema.enriched import render_enriched
from verl_sql.schema.examples import SHOWN
from verl_sql.schema.mschema import render_mschema

DESCRIPTION_FOLDER = "database_description"


class SchemaForm(StrEnum):
    """How a database is shown to the policy."""

    MSCHEMA = "mschema"
    """M-Schema: types, comments, keys and three examples a column."""
    MSCHEMA_BARE = "mschema_bare"
    """M-Schema without examples and comments."""
    ENRICHED = "enriched"
    """M-Schema with statistics and representative values (ReToolSQL)."""
    DDL = "ddl"
    """CREATE TABLE statements."""
    COMPACT = "compact"
    """Names only, for tiny policies."""


def render_schema(
    database: str | Path,
    form: SchemaForm | str = SchemaForm.MSCHEMA,
    descriptions: Descriptions | None = None,
    db_id: str | None = None,
    schema: DatabaseSchema | None = None,
    examples: int = SHOWN,
) -> str:
    """The schema text of a database file.

    Args:
        database: the SQLite file.
        form: which text.
        descriptions: comments; None for none.
        db_id: the name to show, the file's name by default.
        schema: what to show of the database, all of it by default.
        examples: how many example values M-Schema shows of a column.

    Raises:
        FileNotFoundError: there is no such file.
        sqlite3.DatabaseError: the file is not a SQLite database.
    """
    comments = descriptions or Descriptions()
    with open_for_reading(database) as connection:
        shown = schema or schema_of(connection, db_id or Path(database).stem)
        match SchemaForm(form):
            case SchemaForm.MSCHEMA:
                return render_mschema(shown, connection, comments, examples)
            case SchemaForm.MSCHEMA_BARE:
                return render_mschema(shown)
            case SchemaForm.ENRICHED:
                return render_enriched(shown, connection, comments)
            case SchemaForm.DDL:
                return render_ddl(shown, comments)
            case SchemaForm.COMPACT:
                return render_compact(shown)


def descriptions_beside(database: Path, with_values: bool = False) -> Descriptions:
    """The descriptions in `database_description/` beside a database file; none when there is no such folder."""
    folder = database.parent / DESCRIPTION_FOLDER
    return load_descriptions(folder, with_values) if folder.is_dir() else Descriptions()
