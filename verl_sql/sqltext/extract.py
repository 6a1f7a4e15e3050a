"""From a completion to its answer: the one SQL text a careful reader would take from what the policy wrote.

Thinking is set aside first (everything up to the last closing tag). In what remains the most explicit marking wins:
`<answer>`, then `<sql>` (or a pair such as `@@@SQL_START@@@ … @@@SQL_END@@@`), then the last SQL fence, then bare SQL.
Among several of a kind the last one counts. The text is cut, never rewritten: more than one statement stays more than
one statement, and only white space, a trailing `;` and prose after the end of the statement are left out.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from verl_sql.sqltext.scan import OPAQUE, TokenKind, scan


class AnswerStyle(StrEnum):
    """Where a recipe expects its answers."""

    AUTO = "auto"
    """The most explicit marking that is there."""
    ANSWER_TAG = "answer_tag"
    """`<answer>…</answer>` only (Reasoning-SQL, Think2SQL)."""
    SQL_TAG = "sql_tag"
    """`<sql>…</sql>` only (Sparks of Tabular Reasoning)."""
    FENCE = "fence"
    """A Markdown fence only."""
    BARE = "bare"
    """SQL without any marking only."""


class FoundIn(StrEnum):
    """Where the answer was found."""

    ANSWER_TAG = "answer_tag"
    """Inside `<answer>`, perhaps inside a fence or an `<sql>` tag there."""
    SQL_TAG = "sql_tag"
    """Inside `<sql>` or between start and end marks of that meaning."""
    FENCE = "fence"
    """Inside a Markdown fence."""
    BARE = "bare"
    """In plain text, from its first SQL keyword on."""
    NONE = "none"
    """Nowhere."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a completion answers.

    Attributes:
        sql: the SQL text, or None when there is none; equal to `completion[start:end]`.
        start: first character of the SQL in the completion.
        end: one past its last character (start == end when there is no answer).
        found_in: the marking it was found in.
        reasoning: the text inside the thinking tags, or None when there are none.
    """

    sql: str | None
    start: int
    end: int
    found_in: FoundIn
    reasoning: str | None


Span = tuple[int, int]

_END_OF_TURN = re.compile(r"<\|im_end\|>|<\|endoftext\|>|<\|eot_id\|>|<\|end\|>|</s>|<end_of_turn>")
_THINK_OPEN = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_ANSWER_OPEN, _ANSWER_CLOSE = re.compile(r"<answer>", re.IGNORECASE), re.compile(r"</answer>", re.IGNORECASE)
_SQL_OPEN = re.compile(r"<sql>|@@@SQL_START@@@", re.IGNORECASE)
_SQL_CLOSE = re.compile(r"</sql>|@@@SQL_END@@@", re.IGNORECASE)
_ENDS_IN_BLOCK = re.compile(r"(?:</answer>|</sql>|@@@SQL_END@@@|`{3})\s{0,100}\Z", re.IGNORECASE)
_FENCE_OPEN = re.compile(r"`{3,}[ \t]*([\w+-]*)")
_FENCE_CLOSE = re.compile(r"`{3,}")
_SQL_LANGUAGES = frozenset({"sql", "sqlite", "sqlite3", "postgresql", "mysql"})
_KEYWORD = (
    r"(?:SELECT|WITH|VALUES|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|PRAGMA|ATTACH|DETACH|EXPLAIN|VACUUM|REINDEX"
    r"|ANALYZE|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|END)\b"
)
# Possessive and atomic, so that no text makes it backtrack.
_STARTS_SQL = re.compile(rf"(?:\s|--[^\n]*\n|(?>/\*.*?\*/)|\()*+({_KEYWORD})", re.IGNORECASE | re.DOTALL)
_MORE_SQL = re.compile(rf"(?:\s|;|--[^\n]*\n|(?>/\*.*?\*/)|\()*+{_KEYWORD}", re.IGNORECASE | re.DOTALL)
_CTE_HEAD = (
    r"(?i:WITH)\s+(?i:RECURSIVE\s+)?[\w\"`\[][^\s(]*[^()]{0,80}?(?:\([^()]{0,200}\)\s*)?\s(?i:AS)\s[^()]{0,20}\("
)
_STARTS_CTE = re.compile(_CTE_HEAD)
_BARE_START = re.compile(rf"(?:^[ \t>*`(]*(?:-[ \t])?[*`]*|:[ \t*`]*)((?:SELECT|select)\b|{_CTE_HEAD})", re.MULTILINE)
_BARE_STOP = re.compile(r"</?(?:answer|sql|think|thinking|reasoning)>|@@@SQL_|`{3}|<\|", re.IGNORECASE)
_BLANK = re.compile(r"[\s;]*+")
_ONLY_COMMENTS = re.compile(r"(?:[\s;]++|(?>--[^\n]*+|/\*.*?(?:\*/|\Z)))*+", re.DOTALL)
_STOPS = re.compile(rf"(?P<space>\s++)|(?P<mark>[();])|{OPAQUE}", re.DOTALL)
"""What may end a statement, and what hides it."""
_SEMICOLONS = re.compile(rf";|{OPAQUE}", re.DOTALL)
"""The same where the text has no empty line."""
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_CONTINUES = re.compile(
    rf"\s*(?:[(),;.+<>=|\"'`\[]|--|/\*|(?P<word>{_KEYWORD}|(?:FROM|WHERE|GROUP|ORDER|HAVING|LIMIT|OFFSET|UNION|INTERSECT|"
    r"EXCEPT|JOIN|INNER|LEFT|RIGHT|FULL|CROSS|NATURAL|ON|USING|AND|OR|NOT|IN|AS|WHEN|THEN|ELSE|END|CASE|BETWEEN|LIKE|IS|"
    r"WINDOW|RETURNING)\b)|[\w$]+\s+AS\s*\()",
    re.IGNORECASE,
)
_WANTS_MORE = re.compile(
    r"(?:[(,=<>+*/|.-]|\b(?:SELECT|FROM|WHERE|BY|AND|OR|ON|AS|UNION|ALL|SET|DISTINCT))\Z", re.IGNORECASE
)


def extract_answer(completion: str, style: AnswerStyle | str = AnswerStyle.AUTO) -> Answer:
    """The SQL that `completion` answers with. Never raises for any text.

    Args:
        completion: the policy's whole output.
        style: which marking to accept; "auto" takes the most explicit one that is there.

    Returns:
        The answer, whose span is exact: `completion[start:end] == sql`.

    Raises:
        ValueError: `style` is no AnswerStyle.
    """
    finders = _FINDERS.get(style) or _FINDERS[AnswerStyle(style)]
    end = _end_of_turn(completion)
    thought = _thinking(completion, end)
    reasoning = completion[thought[0] : thought[1]].strip() if thought else None
    for region in _regions(completion, end, thought):
        for finder, found_in in finders:
            span = finder(completion, region)
            if span is not None and (span := _trim(completion, span)) is not None:
                return Answer(completion[span[0] : span[1]], *span, found_in, reasoning)
    return Answer(None, end, end, FoundIn.NONE, reasoning)


def _end_of_turn(text: str) -> int:
    """Where the first end-of-turn mark after some text stands; the length of the text without one."""
    if "<" not in text:
        return len(text)
    for match in _END_OF_TURN.finditer(text):
        if text[: match.start()].strip():
            return match.start()
    return len(text)


def _thinking(text: str, end: int) -> Span | None:
    """The span of what was thought: up to the last closing tag, or from an opening tag that is never closed."""
    if "<" not in text:
        return None
    opening = _THINK_OPEN.search(text, 0, end)
    closings = list(_THINK_CLOSE.finditer(text, 0, end))
    if closings:
        start = opening.end() if opening and opening.end() <= closings[-1].start() else 0
        return start, closings[-1].start()
    return (opening.end(), end) if opening else None


def _regions(text: str, end: int, thought: Span | None) -> Iterator[Span]:
    """Where to look, best first: after the thinking, then before it, then an unclosed thinking that ends in a block."""
    if thought is None:
        yield 0, end
        return
    closing = _THINK_CLOSE.match(text, thought[1], end)
    yield (closing.end() if closing else end), end
    opening = _THINK_OPEN.search(text, 0, thought[0])
    yield 0, opening.start() if opening else 0
    if closing is None and _ENDS_IN_BLOCK.search(text[max(thought[0], end - 200) : end]):
        yield thought[0], end


def _answer_tag(text: str, region: Span) -> Span | None:
    """The last `<answer>` that is not blank, and within it a tag, a fence or bare SQL."""
    if "<" not in text:
        return None
    span = _last_tagged(text, region, _ANSWER_OPEN, _ANSWER_CLOSE)
    return span and (_sql_tag(text, span) or _unwrap(text, span))


def _sql_tag(text: str, region: Span) -> Span | None:
    """The last `<sql>` that is not blank, and within it a fence or bare SQL."""
    if "<" not in text and "@@@" not in text:
        return None
    span = _last_tagged(text, region, _SQL_OPEN, _SQL_CLOSE)
    return span and _unwrap(text, span)


def _unwrap(text: str, span: Span) -> Span:
    """What is marked as SQL inside `span`, else where its SQL begins, else all of it."""
    if fenced := _fence(text, span):
        return fenced
    if _STARTS_SQL.match(text, *span):
        return span
    return _bare(text, span) or span


def _last_tagged(text: str, region: Span, opening: re.Pattern[str], closing: re.Pattern[str]) -> Span | None:
    """The inside of the last opening tag that has content; without a closing tag it runs to the region's end."""
    for match in reversed(list(opening.finditer(text, *region))):
        close = closing.search(text, match.end(), region[1])
        span = (match.end(), close.start() if close else region[1])
        if text[slice(*span)].strip(" \t\r\n;"):
            return span
    return None


def _fence(text: str, region: Span) -> Span | None:
    """The inside of the last fence that is labelled as SQL or holds some; an unclosed one runs to the region's end."""
    found = None
    at = region[0]
    while (opening := _FENCE_OPEN.search(text, at, region[1])) is not None:
        language = opening.group(1).lower()
        known = language in _SQL_LANGUAGES
        no_label = not known and _STARTS_SQL.match(text, opening.start(1), opening.end())
        start = opening.start(1) if no_label else opening.end()
        close = _FENCE_CLOSE.search(text, start, region[1])
        # A name quoted in backticks may touch the fence: its own backtick comes first.
        span = (start, close.end() - 3 if close else region[1])
        if text[slice(*span)].strip() and (known or _STARTS_SQL.match(text, *span)):
            found = span
        at = close.end() if close else region[1]
    return found


def _bare(text: str, region: Span) -> Span | None:
    """Plain SQL: the whole region if it begins as SQL, else its last statement after a line start or a colon."""
    stop = _BARE_STOP.search(text, *region)
    end = stop.start() if stop else region[1]
    if _begins_as_sql(text, region[0], end):
        return region[0], end
    found = None
    at = region[0]
    while (match := _BARE_START.search(text, at, end)) is not None:
        span = (match.start(1), end)
        found, at = span, max(_statement_end(text, span), match.end())
    return found


def _begins_as_sql(text: str, start: int, end: int) -> bool:
    """Whether plain text begins with a statement and not with a sentence such as "With these tables we …"."""
    match = _STARTS_SQL.match(text, start, end)
    if match is None:
        return False
    word = match.group(1)
    if word.isupper() or word.lower() == "select":
        return True
    return bool(_STARTS_CTE.match(text, match.start(1), end)) if word.lower() == "with" else word.islower()


def _trim(text: str, span: Span) -> Span | None:
    """The span without white space, prose after the statement, and trailing `;`; None when no SQL is left."""
    end = _statement_end(text, span)
    leading = _BLANK.match(text, span[0], end)
    start = leading.end() if leading else span[0]
    return None if _ONLY_COMMENTS.fullmatch(text, start, end) else (start, _last_end(text, start, end))


def _last_end(text: str, start: int, end: int) -> int:
    """Where the last token that is no `;` ends, without white space; a `;` in a comment or open quote belongs to it."""
    body = text[start:end].rstrip()
    if not body.endswith(";"):
        return start + len(body)
    tokens = (t for t in scan(text, start, end) if t.kind is not TokenKind.SPACE and text[t.start : t.end] != ";")
    *_, last = tokens
    return last.start + len(text[last.start : last.end].rstrip())


def _statement_end(text: str, span: Span) -> int:
    """Where the statement that begins the span ends: prose after a `;` or after an empty line is not part of it."""
    if not _PARAGRAPH.search(text, *span):
        return _first_end(text, span)
    depth = 0
    for match in _STOPS.finditer(text, *span):
        mark = match.group("mark") or ""
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if mark == ";" and match.start() > span[0] and not _MORE_SQL.match(text, match.end(), span[1]):
            return match.start()
        if match.lastgroup == "space" and depth <= 0 and _is_break(text, match.span(), span):
            return match.start()
    return span[1]


def _first_end(text: str, span: Span) -> int:
    """`_statement_end` of text without an empty line: only a `;` can end the statement there."""
    if text.find(";", *span) < 0:
        return span[1]
    for match in _SEMICOLONS.finditer(text, *span):
        at = match.start()
        if text[at] == ";" and at > span[0] and not _MORE_SQL.match(text, match.end(), span[1]):
            return at
    return span[1]


def _is_break(text: str, space: Span, span: Span) -> bool:
    """Whether white space holds an empty line between a statement and something that does not continue it."""
    before = text[max(span[0], space[0] - 20) : space[0]]
    if not before or not _PARAGRAPH.search(text, *space):
        return False
    return not (_continues(text, space[1], span[1]) or _WANTS_MORE.search(before))


def _continues(text: str, start: int, end: int) -> bool:
    """Whether what follows an empty line goes on with a statement; "In short, …" and a list do not."""
    match = _CONTINUES.match(text, start, end)
    word = match.group("word") if match else None
    return match is not None and (word is None or word.isupper() or word.islower())


_EXPLICIT: tuple[tuple[Callable[[str, Span], Span | None], FoundIn], ...] = (
    (_answer_tag, FoundIn.ANSWER_TAG),
    (_sql_tag, FoundIn.SQL_TAG),
    (_fence, FoundIn.FENCE),
    (_bare, FoundIn.BARE),
)
_FINDERS: dict[str, tuple[tuple[Callable[[str, Span], Span | None], FoundIn], ...]] = {
    style: tuple(pair for pair in _EXPLICIT if style is AnswerStyle.AUTO or style.value == pair[1].value)
    for style in AnswerStyle
}
"""The finders that a style accepts, most explicit first, each with the name of what it finds."""
