"""The diagnostic tree of Progress-SQL: a query abstracted into clause-level profiles, nested queries and all.

A profile holds, per clause, a bag of shapes: expressions with aliases resolved, names case-folded and every literal
replaced by `?`; a CTE is `step` and its number, whatever it is called, and its columns have no owner. Subqueries, CTEs
and the branches of set operations are profiles of their own below it. Two trees are aligned clause by clause; a clause
that merely exists on both sides is worth nothing by itself.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot import exp

from verl_sql.sqltext.clauses import clause_tokens
from verl_sql.sqltext.items import NO_SCHEMA, SchemaNames
from verl_sql.sqltext.parse import Node, parse_sql
from verl_sql.sqltext.similarity import bag_f1

CLAUSES = ("select", "distinct", "sources", "joins", "where", "group by", "having", "order by", "limit")
"""Clauses of one profile, in the order of reading."""

_FLIPPED = {exp.GT: ("lt", True), exp.GTE: ("lte", True), exp.LT: ("lt", False), exp.LTE: ("lte", False)}
_STRUCTURE = re.compile(r"[().,&:\s]")
_COMMUTATIVE = (exp.EQ, exp.NEQ, exp.Add, exp.Mul, exp.And, exp.Or)


@dataclass(frozen=True, slots=True)
class Profile:
    """One query of a diagnostic tree.

    Attributes:
        clauses: clause -> its shapes, sorted; clauses the query does not have are missing.
        nested: (place, profile) of each subquery and CTE, in order; the place is a clause or `with`.
        branches: (operator, profile) of each further branch of a set operation, in order.
        parsed: False when there was no tree and the clauses hold tokens.
        outputs: the shapes of the select list in its order.
    """

    clauses: dict[str, tuple[str, ...]]
    nested: tuple[tuple[str, "Profile"], ...] = ()
    branches: tuple[tuple[str, "Profile"], ...] = ()
    parsed: bool = True
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two diagnostic trees part.

    Attributes:
        path: from the outermost query to the one that differs, `` for the outermost.
        clause: the clause, or `nested queries`, `set operations`.
        missing: shapes that the gold has and the prediction lacks.
        extra: shapes that the prediction has and the gold lacks.
    """

    path: str
    clause: str
    missing: tuple[str, ...]
    extra: tuple[str, ...]


@lru_cache(maxsize=8192)
def profile_of(sql: str, names: SchemaNames = NO_SCHEMA) -> Profile:
    """The diagnostic tree of `sql`; never raises. Without a parse, one flat profile of clause tokens."""
    tree = parse_sql(sql).tree
    if isinstance(tree, exp.Query):
        try:
            return _Builder(names).query(tree, ())
        except RecursionError:
            pass
    return Profile(dict(clause_tokens(sql)), parsed=False)


def structural_alignment(pred: Profile, gold: Profile) -> float:
    """How much two diagnostic trees agree, in [0, 1]; 1 when they are equal.

    The mean over what either tree has: each clause by the F1 of its shapes, nested queries by their best pairing
    over the larger number of them, branches of set operations by position (0 where the operators differ).
    """
    scores = [
        bag_f1(pred.clauses.get(clause, ()), gold.clauses.get(clause, ()))
        if clause in pred.clauses and clause in gold.clauses
        else 0.0
        for clause in {*pred.clauses, *gold.clauses}
    ]
    if pred.nested or gold.nested:
        paired = sum(score for score, _, _ in pair_nested(pred, gold))
        scores.append(paired / max(len(pred.nested), len(gold.nested)))
    if pred.branches or gold.branches:
        scores.append(_branches(pred, gold))
    return sum(scores) / len(scores) if scores else 1.0


def pair_nested(pred: Profile, gold: Profile) -> list[tuple[float, int, int]]:
    """(alignment, index in pred, index in gold) of nested queries of the same place, best pairs first, each once."""
    candidates = sorted(
        (
            (structural_alignment(p, g), -i, -j)
            for i, (place_p, p) in enumerate(pred.nested)
            for j, (place_g, g) in enumerate(gold.nested)
            if place_p == place_g
        ),
        reverse=True,
    )
    taken_p: set[int] = set()
    taken_g: set[int] = set()
    pairs = []
    for score, i, j in candidates:
        if -i not in taken_p and -j not in taken_g:
            taken_p.add(-i)
            taken_g.add(-j)
            pairs.append((score, -i, -j))
    return pairs


def differences(pred: Profile, gold: Profile, path: str = "") -> Iterator[Difference]:
    """Every clause in which two diagnostic trees differ, outermost first."""
    for clause in dict.fromkeys((*CLAUSES, *gold.clauses, *pred.clauses)):
        have, want = Counter(pred.clauses.get(clause, ())), Counter(gold.clauses.get(clause, ()))
        if have != want or (clause in pred.clauses) != (clause in gold.clauses):
            yield Difference(path, clause, _bag(want - have), _bag(have - want))
    yield from _nested_differences(pred, gold, path)
    for index in range(max(len(pred.branches), len(gold.branches))):
        yield from _branch_differences(pred, gold, path, index)


def _nested_differences(pred: Profile, gold: Profile, path: str) -> Iterator[Difference]:
    """Differences inside paired subqueries, then the subqueries that have no partner."""
    pairs = pair_nested(pred, gold)
    for _, i, j in pairs:
        place, inner = pred.nested[i]
        yield from differences(inner, gold.nested[j][1], f"{path}/{place}[{j + 1}]")
    extra = [place for i, (place, _) in enumerate(pred.nested) if i not in {p for _, p, _ in pairs}]
    missing = [place for j, (place, _) in enumerate(gold.nested) if j not in {g for _, _, g in pairs}]
    if extra or missing:
        yield Difference(path, "nested queries", tuple(missing), tuple(extra))


def _branch_differences(pred: Profile, gold: Profile, path: str, index: int) -> Iterator[Difference]:
    """Differences of one branch of a set operation."""
    have = pred.branches[index] if index < len(pred.branches) else None
    want = gold.branches[index] if index < len(gold.branches) else None
    if have is None or want is None or have[0] != want[0]:
        yield Difference(path, "set operations", (want[0],) if want else (), (have[0],) if have else ())
        return
    yield from differences(have[1], want[1], f"{path}/{have[0]}[{index + 1}]")


def _branches(pred: Profile, gold: Profile) -> float:
    """Alignment of the further branches by position, over the larger number of them."""
    pairs = zip(pred.branches, gold.branches, strict=False)
    total = sum(structural_alignment(p, g) for (op_p, p), (op_g, g) in pairs if op_p == op_g)
    return total / max(len(pred.branches), len(gold.branches))


def _bag(counter: Counter[str]) -> tuple[str, ...]:
    """A bag as a sorted tuple."""
    return tuple(sorted(counter.elements()))


@dataclass(slots=True)
class _Draft:
    """A profile that is being built."""

    clauses: dict[str, list[str]] = field(default_factory=dict)
    nested: list[tuple[str, Profile]] = field(default_factory=list)
    branches: list[tuple[str, Profile]] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)

    def add(self, clause: str, shape: str) -> None:
        """One more shape in a clause."""
        self.clauses.setdefault(clause, []).append(shape)

    def frozen(self) -> Profile:
        """The finished profile."""
        clauses = {clause: tuple(sorted(shapes)) for clause, shapes in self.clauses.items()}
        outputs = tuple(self.clauses.get("select", ()))
        return Profile(clauses, tuple(self.nested), tuple(self.branches), outputs=outputs)


Owners = tuple[dict[str, str], ...]
"""alias -> table of each query from the innermost outwards; the table is empty for a subquery or a CTE."""


class _Builder:
    """Builds the diagnostic tree of one parsed query."""

    def __init__(self, names: SchemaNames) -> None:
        """Remember whose columns are whose."""
        self.names = names
        self.steps: dict[str, str] = {}

    def query(self, node: Node, outer: Owners) -> Profile:
        """The profile of a query of any kind; the names of its CTEs are known inside it only."""
        draft, steps = _Draft(), self.steps
        self._into(node, draft, outer)
        self.steps = steps
        return draft.frozen()

    def _into(self, node: Node, draft: _Draft, outer: Owners) -> None:
        """Add a query to a draft; the first branch of a set operation is the draft itself."""
        for number, cte in enumerate(getattr(node, "ctes", ()), 1):
            self.steps = {**self.steps, cte.alias.lower(): f"step {number}"}
            draft.nested.append(("with", self.query(cte.this, outer)))
        if isinstance(node, exp.Subquery):
            self._into(node.this, draft, outer)
            self._modifiers(node, draft, outer)
        elif isinstance(node, exp.SetOperation):
            self._into(node.left, draft, outer)
            draft.branches.append((_operator(node), self.query(node.right, outer)))
            self._modifiers(node, draft, outer)
        elif isinstance(node, exp.Select):
            self._select(node, draft, outer)
        else:
            draft.add("select", self._shape(node, "select", draft, outer))

    def _select(self, node: Node, draft: _Draft, outer: Owners) -> None:
        """Add one SELECT."""
        aliases: dict[str, str] = {}
        scope = (aliases, *outer)
        origin = node.args.get("from_") or node.args.get("from")
        joins = list(node.args.get("joins") or ())
        sources = ([origin.this] if origin is not None else []) + [join.this for join in joins]
        for source in sources:  # grows: a source may hold joins in parentheses
            inner = source.this if _is_wrapped(source) else source
            joins += inner.args.get("joins") or ()
            sources += [join.this for join in inner.args.get("joins") or ()]
            draft.add("sources", self._source(inner, draft, scope))
        for join in joins:
            draft.add("joins", self._join(join, draft, scope))
        for item in node.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            shape = self._shape(inner, "select", draft, scope)
            draft.add("select", shape)
            if isinstance(item, exp.Alias):
                draft.aliases.setdefault(item.alias.lower(), shape)
        if node.args.get("distinct") is not None:
            draft.add("distinct", "distinct")
        self._modifiers(node, draft, scope)

    def _source(self, node: Node, draft: _Draft, scope: Owners) -> str:
        """The shape of one entry of FROM; its alias becomes known."""
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name, alias = node.name.lower(), (node.alias or node.name).lower()
            step = None if node.args.get("db") else self.steps.get(name)
            scope[0][alias] = "" if step else name
            return step or _plain(name)
        if isinstance(node, exp.Query):
            draft.nested.append(("sources", self.query(node, scope[1:])))
            scope[0][node.alias.lower()] = ""
            return "subquery"
        return self._shape(node, "sources", draft, scope)

    def _join(self, join: Node, draft: _Draft, scope: Owners) -> str:
        """The shape of one join: its kind and its condition; `INNER` says nothing that `JOIN` does not."""
        kind = " ".join(str(join.args.get(part) or "").lower() for part in ("method", "side", "kind")).split()
        using = sorted(_plain(name.name.lower()) for name in join.args.get("using") or ())
        on = join.args.get("on")
        condition = "&".join(sorted(self._shape(atom, "joins", draft, scope) for atom in _atoms(on))) if on else ""
        words = [word for word in kind if word not in ("inner", "outer", "cross")]
        return " ".join([*words, "join", condition, *using]).strip()

    def _modifiers(self, node: Node, draft: _Draft, scope: Owners) -> None:
        """Add WHERE, GROUP BY, HAVING, ORDER BY and LIMIT."""
        args = node.args
        for clause in ("where", "having"):
            for atom in _atoms(args[clause].this) if args.get(clause) is not None else ():
                draft.add(clause, self._shape(atom, clause, draft, scope))
        for term in args["group"].expressions if args.get("group") is not None else ():
            draft.add("group by", self._shape(term, "group by", draft, scope))
        for place, term in enumerate(args["order"].expressions if args.get("order") is not None else ()):
            direction = "desc" if term.args.get("desc") else "asc"
            draft.add("order by", f"{place}:{self._sort_key(term.this, draft, scope)} {direction}")
        for key in ("limit", "offset"):
            if args.get(key) is not None:
                draft.add("limit", f"{key} {_count(args[key].expression)}")

    def _sort_key(self, node: Node, draft: _Draft, scope: Owners) -> str:
        """The shape of what is sorted by; the name or the number of an output column stands for its expression."""
        outputs = draft.clauses.get("select", [])
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in draft.aliases:
            return draft.aliases[node.name.lower()]
        if isinstance(node, exp.Literal) and re.fullmatch(r"[1-9][0-9]{0,3}", node.name) and not node.is_string:
            return outputs[int(node.name) - 1] if int(node.name) <= len(outputs) else "?"
        return self._shape(node, "order by", draft, scope)

    def _shape(self, node: Node, clause: str, draft: _Draft, scope: Owners) -> str:
        """One expression as text: names resolved, literals `?`, the order of operands undone where it means nothing."""
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
            return "null" if isinstance(node, exp.Null) else "?"
        if isinstance(node, exp.Column):
            return self._column(node, scope)
        if isinstance(node, exp.Paren):
            return self._shape(node.this, clause, draft, scope)
        if isinstance(node, exp.Query):
            draft.nested.append((clause, self.query(node, scope)))
            return "subquery"
        parts = [self._shape(child, clause, draft, scope) for child in node.iter_expressions()]
        name, flipped = _FLIPPED.get(type(node), (_label(node), False))
        if isinstance(node, _COMMUTATIVE):
            parts.sort()
        return f"{name}({','.join(reversed(parts) if flipped else parts)})" if parts else name

    def _column(self, node: Node, scope: Owners) -> str:
        """`table.column` where the table is known, else `.column`; a quoted name that no table has is a literal."""
        name, qualifier = node.name.lower(), node.table.lower()
        shown = _plain(name)
        for aliases in scope:
            if qualifier in aliases:
                return f"{_plain(aliases[qualifier])}.{shown}"
            owner = next((t for t in aliases.values() if name in self.names.columns.get(t, ())), None)
            if not qualifier and owner:
                return f"{_plain(owner)}.{shown}"
        if qualifier:
            return f"{_plain(qualifier)}.{shown}"
        quoted = not isinstance(node.this, exp.Star) and bool(node.this.args.get("quoted"))
        return "?" if quoted and self.names.columns and not self._is_column(name) else f".{shown}"

    def _is_column(self, name: str) -> bool:
        """Whether any table has such a column: a subquery or CTE in sight may then hand it on."""
        return any(name in columns for columns in self.names.columns.values())


def _plain(name: str) -> str:
    """A name in which what structures a shape is escaped, so that a shape can be taken apart again."""
    return _STRUCTURE.sub(lambda match: f"%{ord(match.group()):x}", name)


def _is_wrapped(source: Node) -> bool:
    """Whether a source is a table in parentheses, alone or with joins."""
    return isinstance(source, exp.Subquery) and not isinstance(source.this, exp.Query)


def _atoms(node: Node) -> Iterator[Node]:
    """The operands of a conjunction, parentheses removed."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        yield from _atoms(node.left)
        yield from _atoms(node.right)
    else:
        yield node


def _operator(node: Node) -> str:
    """`union`, `union all`, `intersect` or `except`."""
    every = node.args.get("distinct") is False
    return f"{type(node).__name__.lower()}{' all' if every else ''}"


def _label(node: Node) -> str:
    """What kind of node it is; a function unknown to sqlglot goes by its name."""
    if isinstance(node, exp.Anonymous):
        return _plain(str(node.this).lower())
    if isinstance(node, exp.Identifier | exp.Var):
        return _plain(node.name.lower())
    return type(node).__name__.lower()


def _count(node: Node) -> str:
    """A LIMIT's number is structure, not data: `LIMIT 1` and `LIMIT 3` differ."""
    return node.name if isinstance(node, exp.Literal) else "?"
