"""A database in few characters, for tiny policies: `table(column, …)` lines and the foreign keys."""

import re

from verl_sql.database.introspect import DatabaseSchema, quote_name

_BARE_NAME = re.compile(r"[A-Za-z_]\w*\Z")


def render_compact(schema: DatabaseSchema) -> str:
    """One line a table, then one `t1.c1=t2.c2` line a foreign key; names that need quotes have them."""
    tables = [f"{_name(t.name)}({', '.join(_name(c.name) for c in t.columns)})" for t in schema.tables]
    keys = [
        f"{_name(key.table)}.{_name(column)}={_name(key.ref_table)}.{_name(referenced)}"
        for key in schema.foreign_keys
        for column, referenced in zip(key.columns, key.ref_columns, strict=False)
    ]
    return "\n".join([*tables, *dict.fromkeys(keys)])


def _name(name: str) -> str:
    """The name, quoted unless it is plain."""
    return name if _BARE_NAME.match(name) else quote_name(name)
