"""Schema texts for many questions: every database is read once, its restricted texts are put together from memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from verl_sql.database.introspect import DatabaseSchema, open_for_reading, schema_of
from verl_sql.schema.compact import render_compact
from verl_sql.schema.ddl import render_ddl
from verl_sql.schema.descriptions import Descriptions
from verl_sql.schema.enriched import enriched_blocks
from verl_sql.schema.examples import SHOWN
from verl_sql.schema.linking import LinkIndex, build_index, link
from verl_sql.schema.mschema import Blocks, assemble, mschema_blocks, render_mschema
from verl_sql.schema.render import SchemaForm, descriptions_beside
from verl_sql.schema.restrict import SchemaScope, Selection, names_of, restrict, selection_of, whole_tables
from verl_sql.sqltext.items import SchemaNames

Linker = Callable[[str, str, str], Selection]
"""(db_id, question, evidence) -> what it speaks of: a linker of your own, such as a model behind an endpoint."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is kept of one database."""

    schema: DatabaseSchema
    names: SchemaNames
    descriptions: Descriptions
    blocks: Blocks | None
    index: LinkIndex | None


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Renders the schema of a question's database under fixed choices.

    Attributes:
        form: which text.
        scope: how much of the database.
        with_descriptions: whether the CSVs beside the database give comments.
        with_values: whether the comments say what values mean.
        examples: example values a column in M-Schema.
        linker: the linker of the scopes that need one; retrieval by names and values when None.
    """

    form: SchemaForm = SchemaForm.MSCHEMA
    scope: SchemaScope = SchemaScope.FULL
    with_descriptions: bool = True
    with_values: bool = False
    examples: int = SHOWN
    linker: Linker | None = None

    def text(self, database: Path, db_id: str, question: str, evidence: str, gold: str) -> str:
        """The schema text for one question on a database file.

        Raises:
            OSError, sqlite3.DatabaseError: the file cannot be read.
        """
        known = self._known(database, db_id)
        return self._render(known, self._selection(known, question, evidence, gold))

    def schema(self, database: Path, db_id: str) -> DatabaseSchema:
        """The schema of a database file, read together with its text.

        Raises:
            OSError, sqlite3.DatabaseError: the file cannot be read.
        """
        return self._known(database, db_id).schema

    def text_without_database(
        self, schema: DatabaseSchema, question: str, evidence: str, gold: str, descriptions: Descriptions | None = None
    ) -> str:
        """The same from a schema alone: no examples, no statistics, no values to link."""
        comments = descriptions or Descriptions()
        index = build_index(schema, None, comments) if self._links else None
        blocks = mschema_blocks(schema, None, comments)
        known = _Known(schema, names_of(schema), comments, blocks, index)
        return self._render(known, self._selection(known, question, evidence, gold))

    def _known(self, database: Path, db_id: str) -> _Known:
        """What is kept of a database for all scopes and linkers."""
        return _read(replace(self, scope=SchemaScope.FULL, linker=None), database, db_id, self._links)

    @property
    def _links(self) -> bool:
        """Whether the retrieval linker is needed."""
        return self.linker is None and self.scope in (SchemaScope.LINKED, SchemaScope.LINKED_AND_GOLD)

    def _selection(self, known: _Known, question: str, evidence: str, gold: str) -> Selection | None:
        """What to show; None for everything."""
        if self.scope is SchemaScope.FULL:
            return None
        used = selection_of(gold, known.names)
        if self.scope is SchemaScope.GOLD:
            return used
        if self.scope is SchemaScope.GOLD_TABLES:
            return whole_tables(used, known.schema)
        linked = self._link(known, question, evidence)
        return linked | used if self.scope is SchemaScope.LINKED_AND_GOLD else linked

    def _link(self, known: _Known, question: str, evidence: str) -> Selection:
        """The linker's selection."""
        if self.linker is not None:
            return self.linker(known.schema.db_id, question, evidence)
        return link(known.index, question, evidence) if known.index is not None else Selection()

    def _render(self, known: _Known, selection: Selection | None) -> str:
        """The text of a selection in the form asked for."""
        shown = known.schema if selection is None else restrict(known.schema, selection)
        if known.blocks is not None and self.form in (SchemaForm.MSCHEMA, SchemaForm.ENRICHED):
            return assemble(shown, known.blocks)
        if self.form is SchemaForm.DDL:
            return render_ddl(shown, known.descriptions)
        return render_compact(shown) if self.form is SchemaForm.COMPACT else render_mschema(shown)


@lru_cache(maxsize=128)
def _read(source: SchemaSource, database: Path, db_id: str, links: bool) -> _Known:
    """Read one database as `source` needs it; the most recent ones are kept."""
    descriptions = descriptions_beside(database, source.with_values) if source.with_descriptions else Descriptions()
    with open_for_reading(database) as connection:
        schema = schema_of(connection, db_id)
        blocks = None
        if source.form is SchemaForm.MSCHEMA:
            blocks = mschema_blocks(schema, connection, descriptions, source.examples)
        elif source.form is SchemaForm.ENRICHED:
            blocks = enriched_blocks(schema, connection, descriptions)
        index = build_index(schema, connection, descriptions) if links else None
    return _Known(schema, names_of(schema), descriptions, blocks, index)
