"""Schema items of a query: the tables it reads and the columns it names, as `table` and `(table, column)`.

Aliases are resolved, names case-folded, `*` expanded, and double-quoted names that match nothing in the schema are
strings, as SQLite has it. A column of a CTE or subquery is no item of its own: what it stands for was counted inside.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot import exp

from verl_sql.sqltext.parse import Node, parse_sql
from verl_sql.sqltext.scan import TokenKind, significant, unquote

UNKNOWN = "?"
"""Table of a column that belongs to no table in sight."""
_ROWID = frozenset({"rowid", "oid", "_rowid_"})


@dataclass(frozen=True, eq=False, slots=True)
class SchemaNames:
    """A database's table and column names, lower case; compared by identity, so keep one a database.

    Attributes:
        columns: table name to its column names; a table that is missing (a view) is read without knowing its columns.
    """

    columns: Mapping[str, frozenset[str]]


NO_SCHEMA = SchemaNames({})


@dataclass(frozen=True, slots=True)
class SchemaItems:
    """What a query names.

    Attributes:
        tables: base tables, lower case.
        columns: (table, column) pairs, lower case.
        parsed: False when the query could not be parsed and the items were read off its words.
    """

    tables: frozenset[str]
    columns: frozenset[tuple[str, str]]
    parsed: bool = True

    @property
    def all(self) -> frozenset[str | tuple[str, str]]:
        """Tables and columns in one set."""
        return self.tables | self.columns


@lru_cache(maxsize=16384)
def schema_items(sql: str, names: SchemaNames = NO_SCHEMA) -> SchemaItems:
    """The schema items of `sql`; never raises.

    A query without a tree gives every word of its text that names a table, and every word that names a column of
    one of those tables, with `parsed` False.
    """
    tree = parse_sql(sql).tree
    if isinstance(tree, exp.Query):
        try:
            reader = _Reader(names)
            reader.query(tree, {}, None)
            return SchemaItems(frozenset(reader.tables), frozenset(reader.found))
        except RecursionError:
            pass
    return _from_words(sql, names)


def _from_words(sql: str, names: SchemaNames) -> SchemaItems:
    """Items by the words of the text alone."""
    words = {
        unquote(sql[t.start : t.end]).lower() for t in significant(sql) if t.kind in (TokenKind.WORD, TokenKind.QUOTED)
    }
    tables = frozenset(words & names.columns.keys())
    columns = frozenset((table, column) for table in tables for column in words & names.columns[table])
    return SchemaItems(tables, columns, parsed=False)


@dataclass(slots=True)
class _Source:
    """One entry of a FROM clause: a base table by name, or (None) a derived one; its columns where they are known."""

    table: str | None
    columns: frozenset[str] | None


@dataclass(slots=True)
class _Scope:
    """Names visible inside one SELECT; `parent` is that of the query around it."""

    parent: "_Scope | None"
    ctes: dict[str, _Source]
    sources: dict[str, _Source] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)


class _Reader:
    """Walks one tree and collects its items."""

    def __init__(self, names: SchemaNames) -> None:
        """Nothing found yet."""
        self.names = names
        self.tables: set[str] = set()
        self.found: set[tuple[str, str]] = set()

    def query(self, node: Node, ctes: dict[str, _Source], parent: _Scope | None) -> frozenset[str] | None:
        """Read a query; returns the names of its output columns, None where they are not known."""
        visible = dict(ctes)
        for cte in getattr(node, "ctes", ()):
            self._cte(cte, visible, parent)
        if isinstance(node, exp.Subquery):
            output = self.query(node.this, visible, parent)
            self._tail(node, _Scope(parent, visible, aliases=set(output or ())))
            return output
        if isinstance(node, exp.SetOperation):
            output = self.query(node.left, visible, parent)
            self.query(node.right, visible, parent)
            self._tail(node, _Scope(parent, visible, aliases=set(output or ())))
            return output
        if isinstance(node, exp.Select):
            return self._select(node, _Scope(parent, visible))
        self._visit(node, _Scope(parent, visible))
        return None

    def _cte(self, cte: Node, visible: dict[str, _Source], parent: _Scope | None) -> None:
        """Read one CTE and make its name visible; a recursive one sees itself."""
        name = cte.alias.lower()
        named = _alias_columns(cte)
        visible[name] = _Source(None, named)
        output = self.query(cte.this, visible, parent)
        visible[name] = _Source(None, named or output)

    def _select(self, node: Node, scope: _Scope) -> frozenset[str] | None:
        """Read one SELECT: its sources first, then everything that names their columns."""
        origin = node.args.get("from_") or node.args.get("from")
        if origin is not None:
            self._source(origin.this, scope)
        self._joins(node, scope)
        scope.aliases.update(e.alias.lower() for e in node.expressions if isinstance(e, exp.Alias))
        output = self._projections(node, scope)
        self._tail(node, scope)
        return output

    def _source(self, node: Node, scope: _Scope) -> None:
        """Add one entry of a FROM clause, and the joins written inside its parentheses."""
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            self._table(node, scope)
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
            self._source(node.this, scope)
        elif isinstance(node, exp.Query):
            output = self.query(node, scope.ctes, scope.parent)
            scope.sources[node.alias.lower()] = _Source(None, _alias_columns(node) or output)
        else:
            self._visit(node, scope)
            scope.sources[node.alias.lower()] = _Source(None, None)
        self._joins(node, scope)

    def _table(self, node: Node, scope: _Scope) -> None:
        """A named table: a CTE's name hides a base table's."""
        name = node.name.lower()
        alias = (node.alias or name).lower()
        if name in scope.ctes and not node.args.get("db"):
            scope.sources[alias] = scope.ctes[name]
            return
        self.tables.add(name)
        scope.sources[alias] = _Source(name, self.names.columns.get(name))

    def _joins(self, node: Node, scope: _Scope) -> None:
        """Add joined sources, then read their conditions."""
        for join in node.args.get("joins") or ():
            self._source(join.this, scope)
            for name in join.args.get("using") or ():
                self._using(name.name.lower(), scope)
            if join.args.get("on") is not None:
                self._visit(join.args["on"], scope)

    def _using(self, name: str, scope: _Scope) -> None:
        """A column of USING belongs to every base table in sight that has it."""
        self.found.update(
            (s.table, name) for s in scope.sources.values() if s.table is not None and name in (s.columns or (name,))
        )

    def _projections(self, node: Node, scope: _Scope) -> frozenset[str] | None:
        """Read the select list; returns its output names, None if a star hides some."""
        output: set[str] | None = set()
        for item in node.expressions:
            if item.is_star and isinstance(item, exp.Star | exp.Column):
                columns = self._star(item, scope)
                output = None if output is None or columns is None else output | columns
                continue
            self._visit(item, scope)
            if output is not None:
                output.add(item.alias_or_name.lower())
        return None if output is None else frozenset(output)

    def _star(self, item: Node, scope: _Scope) -> set[str] | None:
        """Expand `*` or `t.*`; returns the column names it stands for, None where they are not known."""
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        sources = [s for alias, s in scope.sources.items() if not table or alias == table]
        columns: set[str] | None = set()
        for source in sources:
            if source.table is not None:
                self.found.update((source.table, column) for column in source.columns or ())
            columns = None if columns is None or source.columns is None else columns | source.columns
        return columns

    def _tail(self, node: Node, scope: _Scope) -> None:
        """Read WHERE, GROUP BY, HAVING, ORDER BY and the rest; an ORDER BY term may be an output name first."""
        for key, value in node.args.items():
            if key in ("expressions", "from_", "from", "joins", "with_", "with", "this", "expression", "alias"):
                continue
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.Order):
                    self._order(child, scope)
                elif hasattr(child, "iter_expressions"):
                    self._visit(child, scope)

    def _order(self, order: Node, scope: _Scope) -> None:
        """Read the terms of ORDER BY."""
        for ordered in order.expressions:
            term = ordered.this
            if isinstance(term, exp.Column) and not term.table and term.name.lower() in scope.aliases:
                continue
            self._visit(ordered, scope)

    def _visit(self, root: Node, scope: _Scope) -> None:
        """Read an expression: columns here, queries inside it in a scope of their own."""
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Column):
                self._column(node, scope)
            elif isinstance(node, exp.Query):
                self.query(node, scope.ctes, scope)
            else:
                field = node.args.get("field") if isinstance(node, exp.In) else None
                if field is not None:
                    self._in_table(field.name.lower(), scope)
                stack.extend(child for child in node.iter_expressions() if child is not field)

    def _in_table(self, name: str, scope: _Scope) -> None:
        """`x IN table` reads that table."""
        if name not in scope.ctes and name in self.names.columns:
            self.tables.add(name)

    def _column(self, node: Node, scope: _Scope) -> None:
        """Record one column reference."""
        if isinstance(node.this, exp.Star):
            self._star(node, scope)
            return
        name, qualifier = node.name.lower(), node.table.lower()
        if qualifier:
            self._qualified(name, qualifier, scope)
        else:
            self._bare(name, bool(node.this.args.get("quoted")), scope)

    def _qualified(self, name: str, qualifier: str, scope: _Scope) -> None:
        """`t.c`: the nearest source of that alias; an alias nobody declared stands for itself."""
        for level in _outwards(scope):
            source = level.sources.get(qualifier)
            if source is not None:
                if source.table is not None:
                    self.found.add((source.table, name))
                return
        self.found.add((qualifier if qualifier in self.names.columns else UNKNOWN, name))

    def _bare(self, name: str, quoted: bool, scope: _Scope) -> None:
        """`c`: the nearest source that has it, else an output name, else a string, else a column nobody has."""
        for level in _outwards(scope):
            for source in level.sources.values():
                if source.columns is not None and name in source.columns:
                    if source.table is not None:
                        self.found.add((source.table, name))
                    return
        if quoted or name in _ROWID or any(name in level.aliases for level in _outwards(scope)):
            return
        self._unknown(name, list(scope.sources.values()))

    def _unknown(self, name: str, sources: list[_Source]) -> None:
        """A name that no source is known to have: its only source's, or nobody's; a derived source may well have it."""
        if any(source.table is None and source.columns is None for source in sources):
            return
        bases = [source.table for source in sources if source.table is not None]
        self.found.add((bases[0] if len(bases) == 1 else UNKNOWN, name))


def _outwards(scope: _Scope | None) -> Iterator[_Scope]:
    """A scope and those around it."""
    while scope is not None:
        yield scope
        scope = scope.parent


def _alias_columns(node: Node) -> frozenset[str] | None:
    """Column names given in `AS t(c1, c2)`."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return frozenset(c.name.lower() for c in columns) if columns else None
