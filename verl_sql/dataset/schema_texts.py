"""Which schema text an example is shown with: of its database, of a `tables.json`, or what the dataset itself gives."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from verl_sql.database.introspect import DatabaseSchema
from verl_sql.dataset.example import Example
from verl_sql.dataset.settings import Settings
from verl_sql.schema.restrict import SchemaScope, Selection
from verl_sql.schema.source import SchemaSource

LINKING = (SchemaScope.LINKED, SchemaScope.LINKED_AND_GOLD)
"""Scopes that need a linker."""


class SchemaTexts:
    """Schema texts under fixed settings.

    Args:
        settings: form, scopes, descriptions, examples.
        schemas: db_id -> schema, from a `tables.json`, for questions whose database is not there.
    """

    def __init__(self, settings: Settings, schemas: Mapping[str, DatabaseSchema]) -> None:
        """Nothing is read yet."""
        self.settings = settings
        self.schemas = schemas

    def shown(self, database: Path | None, example: Example, linked: Selection | None = None) -> str:
        """What the policy sees, in the scope of the example's split.

        Args:
            database: the example's database file, None when it is not there.
            example: the question.
            linked: a selection that takes the retrieval linker's place.

        Raises:
            FileNotFoundError: there is neither a database nor a schema.
            OSError, sqlite3.DatabaseError: the database cannot be read.
        """
        source = self._source(self.scope(example.split))
        return self._text(source if linked is None else replace(source, linker=lambda *_: linked), database, example)

    def whole(self, database: Path | None, example: Example) -> str:
        """The whole schema in the same form; raises as `shown` does."""
        return self._text(self._source(SchemaScope.FULL), database, example)

    def schema(self, database: Path | None, example: Example) -> DatabaseSchema | None:
        """The schema itself, None when there is only a text; raises as `shown` does."""
        if database is not None:
            return self._source(SchemaScope.FULL).schema(database, example.db_id)
        return self.schemas.get(example.db_id)

    def scope(self, split: str) -> SchemaScope:
        """How much is shown in one split."""
        s = self.settings
        return s.scope if split in s.train_splits else s.evaluation_scope

    def _source(self, scope: SchemaScope) -> SchemaSource:
        """Where texts of a scope come from."""
        s = self.settings
        return SchemaSource(s.form, scope, s.descriptions, s.value_descriptions, s.examples)

    def _text(self, source: SchemaSource, database: Path | None, example: Example) -> str:
        """The text of an example from one source."""
        asked = (example.question, example.evidence, example.gold_sql)
        if database is not None:
            return source.text(database, example.db_id, *asked)
        if example.db_id in self.schemas:
            return source.text_without_database(self.schemas[example.db_id], *asked)
        if example.schema_text:
            return example.schema_text
        raise FileNotFoundError(f"no database {example.db_id!r} and no schema in the dataset")
