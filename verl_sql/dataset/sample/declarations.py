"""What the sample databases hold: tables, columns and the words that questions use for them.

Names are odd on purpose, as BIRD's are: keywords (`order`, `match`), spaces, `%`, `#`, cryptic codes (`A3`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a column is to the question templates."""

    KEY = "key"
    """The primary key, 1, 2, 3, …"""
    NAME = "name"
    """A made-up proper name; answers show it."""
    CATEGORY = "category"
    """One of a few text values, or NULL."""
    NUMBER = "number"
    """An integer in a range, or NULL."""
    DATE = "date"
    """An ISO date, or NULL."""
    PARENT = "parent"
    """A foreign key to the first table's key, or NULL."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its SQL name, its role, the phrase questions use, and the values it draws from."""

    name: str
    role: Role
    phrase: str
    values: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    @property
    def is_cryptic(self) -> bool:
        """Whether the name does not say what the phrase says, so that a description or evidence is needed."""
        return self.phrase.replace(" ", "_") != self.name.lower().replace(" ", "_")


@dataclass(frozen=True, slots=True)
class Table:
    """One table; the first column is its key."""

    name: str
    noun: str
    columns: tuple[Column, ...]

    @property
    def key(self) -> Column:
        """The primary key."""
        return self.columns[0]

    def having(self, *roles: Role) -> list[Column]:
        """The columns with one of these roles, in order."""
        return [column for column in self.columns if column.role in roles]

    @property
    def shown(self) -> Column:
        """The column an answer shows for a row: its name, else its key."""
        return (self.having(Role.NAME) or [self.key])[0]


@dataclass(frozen=True, slots=True)
class Database:
    """A parent table and a child table whose `PARENT` column refers to it."""

    db_id: str
    parent: Table
    child: Table

    @property
    def tables(self) -> tuple[Table, Table]:
        """Parent first: the order they are created in."""
        return (self.parent, self.child)

    @property
    def link(self) -> Column:
        """The child's foreign key."""
        return self.child.having(Role.PARENT)[0]


def _key(name: str, phrase: str) -> Column:
    return Column(name, Role.KEY, phrase)


def _name(name: str, phrase: str = "name") -> Column:
    return Column(name, Role.NAME, phrase)


def _category(name: str, phrase: str, values: str) -> Column:
    return Column(name, Role.CATEGORY, phrase, values=tuple(values.split()))


def _number(name: str, phrase: str, low: int, high: int) -> Column:
    return Column(name, Role.NUMBER, phrase, low=low, high=high)


def _date(name: str, phrase: str) -> Column:
    return Column(name, Role.DATE, phrase)


def _parent(name: str, phrase: str) -> Column:
    return Column(name, Role.PARENT, phrase)


def _table(name: str, noun: str, *columns: Column) -> Table:
    return Table(name, noun, columns)


SEEN: Sequence[Database] = (
    Database(
        "clinic",
        _table(
            "patient",
            "patients",
            _key("pt_no", "patient number"),
            _name("nm"),
            _category("sx", "sex", "F M"),
            _date("birth date", "birth date"),
            _number("weight", "weight", 10, 99),
        ),
        _table(
            "visit",
            "visits",
            _key("vid", "visit id"),
            _parent("pt_no", "patient"),
            _category("ward", "ward", "cardio derma neuro ortho"),
            _number("fee", "fee", 10, 99),
        ),
    ),
    Database(
        "shop",
        _table(
            "customer",
            "customers",
            _key("cid", "customer id"),
            _name("cname"),
            _category("Segment", "segment", "KAM LAM SME"),
            _number("points", "points", 10, 99),
        ),
        _table(
            "order",
            "orders",
            _key("oid", "order id"),
            _parent("cid", "customer"),
            _date("odate", "order date"),
            _category("grp", "product group", "food home toys"),
            _number("qty", "quantity", 1, 60),
        ),
    ),
    Database(
        "league",
        _table(
            "club",
            "clubs",
            _key("club_id", "club id"),
            _name("club name"),
            _category("div", "division", "A1 B2 C3"),
            _number("capacity", "capacity", 10, 99),
        ),
        _table(
            "match",
            "matches",
            _key("mid", "match id"),
            _parent("home", "home club"),
            _date("day", "day"),
            _category("kind", "kind", "cup final league"),
            _number("#_fans", "number of fans", 10, 99),
        ),
    ),
    Database(
        "lab",
        _table(
            "molecule",
            "molecules",
            _key("mol_id", "molecule id"),
            _name("code", "code"),
            _category("label", "label", "neg pos"),
            _number("mass", "mass", 10, 99),
        ),
        _table(
            "atom",
            "atoms",
            _key("atom_id", "atom id"),
            _parent("mol_id", "molecule"),
            _category("element", "element", "br c cl n o"),
            _number("charge", "charge", 1, 99),
            _date("run_on", "run date"),
        ),
    ),
    Database(
        "school",
        _table(
            "schools",
            "schools",
            _key("CDSCode", "school code"),
            _name("School Name"),
            _category("County", "county", "Alameda Fresno Kern"),
            _number("enr", "enrollment", 10, 99),
            _date("opened", "opening date"),
        ),
        _table(
            "satscores",
            "tests",
            _key("tid", "test id"),
            _parent("cds", "school"),
            _category("subject", "subject", "math read write"),
            _number("AvgScr", "average score", 10, 99),
        ),
    ),
    Database(
        "bank",
        _table(
            "account",
            "accounts",
            _key("account_id", "account id"),
            _name("A2", "owner"),
            _category("A3", "region", "east north west"),
            _number("A4", "balance", 10, 99),
        ),
        _table(
            "loan",
            "loans",
            _key("loan_id", "loan id"),
            _parent("account_id", "account"),
            _category("status", "status", "A B C D"),
            _number("amount", "amount", 10, 99),
            _date("date", "date"),
        ),
    ),
    Database(
        "music",
        _table(
            "band",
            "bands",
            _key("bid", "band id"),
            _name("bname"),
            _category("genre", "genre", "folk jazz rock"),
            _date("formed", "founding date"),
            _number("%_Change_2007", "change in 2007", 1, 90),
        ),
        _table(
            "album",
            "albums",
            _key("alb", "album id"),
            _parent("bid", "band"),
            _category("mood", "mood", "calm dark happy"),
            _number("sold", "copies sold", 10, 99),
        ),
    ),
    Database(
        "fleet",
        _table(
            "truck",
            "trucks",
            _key("vin", "truck id"),
            _name("plate", "plate"),
            _category("fuel", "fuel", "cng diesel elec"),
            _number("km", "mileage", 10, 99),
        ),
        _table(
            "trip",
            "trips",
            _key("tno", "trip number"),
            _parent("vin", "truck"),
            _date("left", "departure date"),
            _category("zone", "zone", "inner outer"),
            _number("load", "load", 1, 40),
        ),
    ),
)
"""Databases that training, dev and test questions are about."""

UNSEEN: Sequence[Database] = (
    Database(
        "zoo",
        _table(
            "keeper",
            "keepers",
            _key("kid", "keeper id"),
            _name("kname"),
            _category("shift", "shift", "day night"),
            _number("years", "years", 1, 40),
        ),
        _table(
            "animal",
            "animals",
            _key("an_id", "animal id"),
            _parent("kid", "keeper"),
            _date("born", "birth date"),
            _category("class", "class", "bird fish mammal"),
            _number("weight", "weight", 10, 99),
        ),
    ),
    Database(
        "library",
        _table(
            "writer",
            "writers",
            _key("wid", "writer id"),
            _name("wname"),
            _category("nation", "nation", "CZE DEU ITA"),
            _date("born", "birth date"),
            _number("prizes", "prizes", 1, 40),
        ),
        _table(
            "book",
            "books",
            _key("isbn", "book id"),
            _parent("wid", "writer"),
            _category("topic", "topic", "art math war"),
            _number("pages", "pages", 10, 99),
        ),
    ),
)
"""Databases that no training question is about."""
