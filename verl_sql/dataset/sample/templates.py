"""The question templates of the sample: each draws a question, its gold SQL, its gold chain, and a typical mistake.

The mistake is what an unfiltered LLM-made chain gets wrong now and then: a later step forgets an earlier one and goes
back to the whole table (or MIN for MAX, IN for NOT IN). The cold start is trained on a stated share of them, so that
reinforcement learning has something to correct.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from verl_sql.dataset.sample.databases import quoted as q
from verl_sql.dataset.sample.declarations import Role
from verl_sql.dataset.sample.draw import ChainText, Draw, Drawn


class Exposure(StrEnum):
    """In which training stages questions of a template appear."""

    COLD_START = "cold_start"
    """In the cold start and in RL."""
    RL_ONLY = "rl_only"
    """In RL alone."""
    NEVER = "never"
    """In no training stage, only in evaluation."""


@dataclass(frozen=True, slots=True)
class Template:
    """A way to draw questions, where it is seen in training, and how hard BIRD would call it."""

    draw: Callable[[Draw], Drawn]
    exposure: Exposure
    difficulty: str


def _chain(*parts: str) -> ChainText:
    """`name`, `body`, `name`, `body`, …, `final`."""
    return ChainText(tuple(zip(parts[:-1:2], parts[1:-1:2], strict=True)), parts[-1])


def _filter(d: Draw) -> Drawn:
    t = d.table()
    words, where = d.condition(t)
    shown, key = q(t.shown.name), q(t.key.name)
    columns = shown if t.shown is t.key else f"{key}, {shown}"
    return Drawn(
        f"{d.ask()} {t.shown.phrase} of {t.noun}{words}.",
        f"SELECT {shown} FROM {q(t.name)} WHERE {where}",
        _chain("chosen", f"SELECT {columns} FROM {q(t.name)} WHERE {where}", f"SELECT {shown} FROM chosen"),
    )


def _count(d: Draw) -> Drawn:
    t = d.table()
    n = d.number(t)
    (words, op), x = d.comparison(), d.threshold(t, n)
    return Drawn(
        f"{d.pick(('How many', 'Count the'))} {t.noun} {d.pick(('with', 'having'))} {n.phrase} {words} {x}?",
        f"SELECT COUNT(*) FROM {q(t.name)} WHERE {q(n.name)} {op} {x}",
        _chain(
            "chosen",
            f"SELECT {q(t.key.name)} FROM {q(t.name)} WHERE {q(n.name)} {op} {x}",
            "SELECT COUNT(*) FROM chosen",
        ),
    )


def _count_category(d: Draw) -> Drawn:
    t = d.table()
    c, value = d.category(t)
    return Drawn(
        f"{d.pick(('How many', 'Count the'))} {t.noun} {d.pick(('with', 'having'))} {c.phrase} {value}?",
        f"SELECT COUNT(*) FROM {q(t.name)} WHERE {q(c.name)} = '{value}'",
        _chain(
            "chosen",
            f"SELECT {q(t.key.name)} FROM {q(t.name)} WHERE {q(c.name)} = '{value}'",
            "SELECT COUNT(*) FROM chosen",
        ),
    )


def _two_filters(d: Draw) -> Drawn:
    t = d.table()
    (c, value), n = d.category(t), d.number(t)
    (words, op), x = d.comparison(), d.threshold(t, n)
    shown, number, table = q(t.shown.name), q(n.name), q(t.name)

    def chain(source: str) -> ChainText:
        return _chain(
            "chosen",
            f"SELECT {shown}, {number} FROM {table} WHERE {q(c.name)} = '{value}'",
            "kept",
            f"SELECT {shown} FROM {source} WHERE {number} {op} {x}",
            f"SELECT {shown} FROM kept",
        )

    return Drawn(
        f"{d.ask()} {t.shown.phrase} of {t.noun} with {c.phrase} {value} and {n.phrase} {words} {x}.",
        f"SELECT {shown} FROM {table} WHERE {q(c.name)} = '{value}' AND {number} {op} {x}",
        chain("chosen"),
        flawed=chain(table),
    )


def _count_two_filters(d: Draw) -> Drawn:
    t = d.table()
    (c, value), n = d.category(t), d.number(t)
    (words, op), x = d.comparison(), d.threshold(t, n)
    number, table = q(n.name), q(t.name)
    return Drawn(
        f"{d.pick(('How many', 'Count the'))} {t.noun} with {c.phrase} {value} and {n.phrase} {words} {x}?",
        f"SELECT COUNT(*) FROM {table} WHERE {q(c.name)} = '{value}' AND {number} {op} {x}",
        _chain(
            "chosen",
            f"SELECT {number} FROM {table} WHERE {q(c.name)} = '{value}'",
            f"SELECT COUNT(*) FROM chosen WHERE {number} {op} {x}",
        ),
    )


_AGGREGATES = (("average", "AVG"), ("mean", "AVG"), ("total", "SUM"), ("highest", "MAX"), ("lowest", "MIN"))


def _aggregate(d: Draw) -> Drawn:
    t = d.table()
    n = d.number(t)
    condition, where = d.condition(t, without=n)
    words, function = d.pick(_AGGREGATES)
    number, source = q(n.name), f"FROM {q(t.name)} WHERE {where}"

    def chain(last_source: str) -> ChainText:
        return _chain("chosen", f"SELECT {number} {source}", f"SELECT {function}({number}) FROM {last_source}")

    return Drawn(
        f"{d.pick(('What is the', 'Find the'))} {words} {n.phrase} of {t.noun}{condition}?",
        f"SELECT {function}({number}) {source}",
        chain("chosen"),
        flawed=chain(q(t.name)),
    )


def _top(d: Draw) -> Drawn:
    t = d.table()
    n, m = d.number(t), d.rng.randint(2, 6)
    condition, where = d.condition(t, without=n)
    words, order = d.pick((("highest", "DESC"), ("largest", "DESC"), ("lowest", "ASC"), ("smallest", "ASC")))
    shown, number, table, key = q(t.shown.name), q(n.name), q(t.name), q(t.key.name)
    columns = f"{key}, {shown}, {number}" if t.shown is not t.key else f"{key}, {number}"

    def chain(source: str) -> ChainText:
        return _chain(
            "chosen",
            f"SELECT {columns} FROM {table} WHERE {where} AND {number} IS NOT NULL",
            f"SELECT {shown} FROM {source} ORDER BY {number} {order}, {key} LIMIT {m}",
        )

    return Drawn(
        f"{d.ask()} {t.shown.phrase} of the {m} {t.noun}{condition} that have the {words} {n.phrase}.",
        f"SELECT {shown} FROM {table} WHERE {where} AND {number} IS NOT NULL "
        f"ORDER BY {number} {order}, {key} LIMIT {m}",
        chain("chosen"),
        flawed=chain(table),
    )


def _extreme(d: Draw) -> Drawn:
    t = d.table()
    n = d.number(t)
    condition, where = d.condition(t, without=n)
    words, function = d.pick((("highest", "MAX"), ("largest", "MAX"), ("lowest", "MIN"), ("smallest", "MIN")))
    shown, number, table = q(t.shown.name), q(n.name), q(t.name)

    def chain(source: str) -> ChainText:
        return _chain(
            "chosen",
            f"SELECT {shown}, {number} FROM {table} WHERE {where}",
            "best",
            f"SELECT {function}({number}) AS m FROM {source}",
            f"SELECT {shown} FROM chosen, best WHERE {number} = m",
        )

    return Drawn(
        f"Which {t.noun}{condition} {d.pick(('have', 'reach'))} the {words} {n.phrase}? Give the {t.shown.phrase}.",
        f"SELECT {shown} FROM {table} WHERE {where} AND {number} = "
        f"(SELECT {function}({number}) FROM {table} WHERE {where})",
        chain("chosen"),
        flawed=chain(table),
    )


def _group(d: Draw) -> Drawn:
    t = d.table()
    c = d.column(t, Role.CATEGORY)
    condition, where = d.condition(t, without=c)
    name, table = q(c.name), q(t.name)
    return Drawn(
        f"{d.pick(('For each', 'Per', 'By'))} {c.phrase}, {d.pick(('how many', 'count the'))} {t.noun}{condition}.",
        f"SELECT {name}, COUNT(*) FROM {table} WHERE {where} GROUP BY {name}",
        _chain(
            "chosen",
            f"SELECT {name} FROM {table} WHERE {where}",
            f"SELECT {name}, COUNT(*) FROM chosen GROUP BY {name}",
        ),
    )


def _having(d: Draw) -> Drawn:
    t = d.table()
    c = d.column(t, Role.CATEGORY)
    condition, where = d.condition(t, without=c)
    name = q(c.name)
    known = f"FROM {q(t.name)} WHERE {where} GROUP BY {name}"
    counts = [row[0] for row in d.connection.execute(f"SELECT COUNT(*) {known}")] or [1]
    x = d.rng.randint(max(min(counts) - 1, 0), max(max(counts) - 1, 0))
    return Drawn(
        f"{d.pick(('Which', 'What'))} {c.phrase} values have {d.pick(('more than', 'over'))} {x} {t.noun}{condition}?",
        f"SELECT {name} {known} HAVING COUNT(*) > {x}",
        _chain("counts", f"SELECT {name}, COUNT(*) AS n {known}", f"SELECT {name} FROM counts WHERE n > {x}"),
    )


def _join(d: Draw) -> Drawn:
    parent, child, link = d.database.parent, d.database.child, q(d.database.link.name)
    (condition, where), n = d.condition(parent), d.number(child)
    words, function = d.pick((("average", "AVG"), ("total", "SUM"), ("highest", "MAX")))
    key, number, p, ch = q(parent.key.name), q(n.name), q(parent.name), q(child.name)

    def chain(source: str) -> ChainText:
        return _chain(
            "chosen",
            f"SELECT {key} FROM {p} WHERE {where}",
            "kept",
            f"SELECT {number} FROM {ch} WHERE {link} IN (SELECT {key} FROM chosen)",
            f"SELECT {function}({number}) FROM {source}",
        )

    return Drawn(
        f"{d.pick(('What is the', 'Find the'))} {words} {n.phrase} of {child.noun} of {parent.noun}{condition}?",
        f"SELECT {function}({ch}.{number}) FROM {ch} JOIN {p} ON {ch}.{link} = {p}.{key} WHERE {p}.{where}",
        chain("kept"),
        flawed=chain(ch),
    )


def _join_count(d: Draw) -> Drawn:
    parent, child, link = d.database.parent, d.database.child, q(d.database.link.name)
    (condition, where), (condition2, where2) = d.condition(parent), d.condition(child)
    key, p, ch = q(parent.key.name), q(parent.name), q(child.name)

    def chain(source: str) -> ChainText:
        return _chain(
            "chosen",
            f"SELECT {key} FROM {p} WHERE {where}",
            "kept",
            f"SELECT {link} FROM {ch} WHERE {where2}",
            f"SELECT COUNT(*) FROM {source} WHERE {link} IN (SELECT {key} FROM chosen)",
        )

    return Drawn(
        f"{d.pick(('How many', 'Count the'))} {child.noun}{condition2} belong to {parent.noun}{condition}?",
        f"SELECT COUNT(*) FROM {ch} JOIN {p} ON {ch}.{link} = {p}.{key} WHERE {p}.{where} AND {ch}.{where2}",
        chain("kept"),
        flawed=chain(ch),
    )


def _above_average(d: Draw) -> Drawn:
    t = d.table()
    n = d.number(t)
    condition, where = d.condition(t, without=n)
    words, op = d.pick((("above", ">"), ("over", ">"), ("below", "<"), ("under", "<")))
    shown, number, table = q(t.shown.name), q(n.name), q(t.name)
    return Drawn(
        f"{d.ask()} {t.shown.phrase} of {t.noun}{condition} whose {n.phrase} is {words} "
        f"the overall {d.pick(('average', 'mean'))}.",
        f"SELECT {shown} FROM {table} WHERE {where} AND {number} {op} (SELECT AVG({number}) FROM {table})",
        _chain(
            "typical",
            f"SELECT AVG({number}) AS a FROM {table}",
            f"SELECT {shown} FROM {table}, typical WHERE {where} AND {number} {op} a",
        ),
    )


def _above_group_average(d: Draw) -> Drawn:
    t = d.table()
    n = d.number(t)
    condition, where = d.condition(t, without=n)
    words, op = d.pick((("above", ">"), ("over", ">"), ("below", "<"), ("under", "<")))
    number, table = q(n.name), q(t.name)

    def chain(source: str) -> ChainText:
        return _chain(
            "chosen",
            f"SELECT {number} FROM {table} WHERE {where}",
            "typical",
            f"SELECT AVG({number}) AS a FROM {source}",
            f"SELECT COUNT(*) FROM chosen, typical WHERE {number} {op} a",
        )

    return Drawn(
        f"Among {t.noun}{condition}, how many have {n.phrase} {words} the {d.pick(('average', 'mean'))} of that group?",
        f"SELECT COUNT(*) FROM {table} WHERE {where} AND {number} {op} "
        f"(SELECT AVG({number}) FROM {table} WHERE {where})",
        chain("chosen"),
        flawed=chain(table),
    )


def _without(d: Draw) -> Drawn:
    parent, child, link = d.database.parent, d.database.child, q(d.database.link.name)
    condition, where = d.condition(parent)
    key, shown, p, ch = q(parent.key.name), q(parent.shown.name), q(parent.name), q(child.name)
    linked = f"SELECT {link} FROM {ch} WHERE {link} IS NOT NULL"

    def chain(test: str) -> ChainText:
        return _chain(
            "linked", linked, f"SELECT {shown} FROM {p} WHERE {where} AND {key} {test} (SELECT {link} FROM linked)"
        )

    return Drawn(
        f"{d.ask()} {parent.shown.phrase} of {parent.noun}{condition} "
        f"{d.pick(('without any', 'that have no'))} {child.noun}.",
        f"SELECT {shown} FROM {p} WHERE {key} NOT IN ({linked}) AND {where}",
        chain("NOT IN"),
        flawed=chain("IN"),
    )


def _year(d: Draw) -> Drawn:
    t = d.table()
    c, y = d.column(t, Role.DATE), d.rng.randint(2015, 2021)
    words, op = d.pick((("in", "="), ("during", "="), ("after", ">"), ("before", "<")))
    year = f"strftime('%Y', {q(c.name)})"
    return Drawn(
        f"{d.pick(('How many', 'Count the'))} {t.noun} have a {c.phrase} {words} {y}?",
        f"SELECT COUNT(*) FROM {q(t.name)} WHERE {year} {op} '{y}'",
        _chain("years", f"SELECT {year} AS y FROM {q(t.name)}", f"SELECT COUNT(*) FROM years WHERE y {op} '{y}'"),
    )


def _most(d: Draw) -> Drawn:
    parent, child, link = d.database.parent, d.database.child, q(d.database.link.name)
    condition, where = d.condition(child)
    key, shown, p, ch = q(parent.key.name), q(parent.shown.name), q(parent.name), q(child.name)
    counted = f"COUNT(*) AS n FROM {ch} WHERE {where} AND {link} IS NOT NULL GROUP BY {link}"

    def chain(function: str) -> ChainText:
        return _chain(
            "counts",
            f"SELECT {link}, {counted}",
            "best",
            f"SELECT {link} FROM counts WHERE n = (SELECT {function}(n) FROM counts)",
            f"SELECT {shown} FROM {p} WHERE {key} IN (SELECT {link} FROM best)",
        )

    return Drawn(
        f"Which {parent.noun} have the most {child.noun}{condition}? Give the {parent.shown.phrase}.",
        f"SELECT {shown} FROM {p} WHERE {key} IN (SELECT {link} FROM {ch} WHERE {where} AND {link} IS NOT NULL "
        f"GROUP BY {link} HAVING COUNT(*) = (SELECT MAX(n) FROM (SELECT {counted})))",
        chain("MAX"),
        flawed=chain("MIN"),
    )


def _sum_by(d: Draw) -> Drawn:
    parent, child, link = d.database.parent, d.database.child, q(d.database.link.name)
    c, n = d.column(parent, Role.CATEGORY), d.number(child)
    condition, where = d.condition(child, without=n)
    words, function = d.pick((("total", "SUM"), ("average", "AVG")))
    key, number, p, ch, category = q(parent.key.name), q(n.name), q(parent.name), q(child.name), q(c.name)
    return Drawn(
        f"{d.pick(('For each', 'Per'))} {c.phrase} of {parent.noun}, give the {words} {n.phrase} "
        f"of their {child.noun}{condition}.",
        f"SELECT {p}.{category}, {function}({ch}.{number}) FROM {ch} JOIN {p} ON {ch}.{link} = {p}.{key} "
        f"WHERE {ch}.{where} GROUP BY {p}.{category}",
        _chain(
            "chosen",
            f"SELECT {link}, {number} FROM {ch} WHERE {where}",
            f"SELECT {category}, {function}({number}) FROM chosen JOIN {p} ON chosen.{link} = {p}.{key} "
            f"GROUP BY {category}",
        ),
    )


def _missing(d: Draw) -> Drawn:
    t = d.table()
    c = d.column(t, Role.NUMBER, Role.DATE, Role.CATEGORY)
    condition, where = d.condition(t, without=c)
    name, table = q(c.name), q(t.name)
    return Drawn(
        f"{d.pick(('How many', 'Count the'))} {t.noun}{condition} {d.pick(('have no', 'lack a'))} {c.phrase}?",
        f"SELECT COUNT(*) FROM {table} WHERE {where} AND {name} IS NULL",
        _chain(
            "chosen",
            f"SELECT {name} FROM {table} WHERE {where}",
            f"SELECT COUNT(*) FROM chosen WHERE {name} IS NULL",
        ),
    )


TEMPLATES: Mapping[str, Template] = {
    "filter": Template(_filter, Exposure.COLD_START, "simple"),
    "count": Template(_count, Exposure.COLD_START, "simple"),
    "two_filters": Template(_two_filters, Exposure.COLD_START, "moderate"),
    "aggregate": Template(_aggregate, Exposure.COLD_START, "simple"),
    "top": Template(_top, Exposure.COLD_START, "moderate"),
    "extreme": Template(_extreme, Exposure.COLD_START, "moderate"),
    "group": Template(_group, Exposure.COLD_START, "simple"),
    "having": Template(_having, Exposure.COLD_START, "moderate"),
    "join": Template(_join, Exposure.COLD_START, "challenging"),
    "join_count": Template(_join_count, Exposure.COLD_START, "challenging"),
    "above_average": Template(_above_average, Exposure.COLD_START, "moderate"),
    "above_group_average": Template(_above_group_average, Exposure.COLD_START, "challenging"),
    "without": Template(_without, Exposure.COLD_START, "moderate"),
    "year": Template(_year, Exposure.COLD_START, "simple"),
    "most": Template(_most, Exposure.COLD_START, "challenging"),
    "missing": Template(_missing, Exposure.COLD_START, "simple"),
    "count_category": Template(_count_category, Exposure.RL_ONLY, "simple"),
    "sum_by": Template(_sum_by, Exposure.RL_ONLY, "challenging"),
    "count_two_filters": Template(_count_two_filters, Exposure.NEVER, "moderate"),
}
"""By name: the `template` key of a sample question."""
