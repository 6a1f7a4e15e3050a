"""Where the steps of a chain stand in the sampled tokens: token spans, found without tokenising anything again.

Tokenising the text anew may give other tokens than those that were sampled, so the way goes the other direction: each
sampled token stands for some bytes, their sum is the text that the reward function sees, the steps are found in that
text, and their characters lead back to the tokens.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from verl_sql.sqltext.chain import Chain, split_chain
from verl_sql.sqltext.extract import AnswerStyle, extract_answer

Span = tuple[int, int]

REPLACEMENT = "\ufffd"
"""What stands for bytes that are no UTF-8, one for each invalid run, in Python as in the tokenizers library."""


@dataclass(frozen=True, slots=True)
class StepSpans:
    """The steps of a response.

    Attributes:
        text: the decoded response, special tokens left out: what verl hands to the reward function.
        chain: the answer's chain, None without an answer.
        spans: [first token, one past the last) of each whole step, in order and disjoint; token positions count from
            the start of the response.
    """

    text: str
    chain: Chain | None
    spans: tuple[Span, ...]


class StepFinder:
    """Finds the steps of responses of one tokenizer."""

    def __init__(self, tokenizer: Any, style: AnswerStyle | str = AnswerStyle.AUTO) -> None:
        """Take the tokenizer that decodes the responses, and the style in which the reward looks for the answer."""
        self._tokenizer = tokenizer
        self._style = style
        self._pieces = TokenBytes(tokenizer)

    def find(self, ids: Sequence[int]) -> StepSpans:
        """The steps of a response's tokens; a chain that breaks off gives its whole steps."""
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        answer = extract_answer(text, self._style)
        if answer.sql is None:
            return StepSpans(text, None, ())
        chain = split_chain(answer.sql)
        steps = [(answer.start + step.start, answer.start + step.end) for step in chain.steps]
        return StepSpans(text, chain, tuple(disjoint(self._locate(ids, text, steps))))

    def _locate(self, ids: Sequence[int], text: str, spans: Sequence[Span]) -> list[Span]:
        """The tokens of each span of characters."""
        pieces = [self._pieces(token) for token in ids]
        data = b"".join(pieces)
        if data.decode("utf-8", "replace") != text:  # not a byte-level tokenizer
            return tokens_by_decoding(self._decode, ids, text, spans)
        ends = list(accumulate(map(len, pieces)))
        starts = [0, *ends][: len(ends)]
        at = char_offsets(data)
        return [(bisect_right(ends, at[start]), bisect_left(starts, at[end])) for start, end in spans]

    def _decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text


class TokenBytes:
    """The bytes that a token of a byte-level tokenizer adds to the decoded text; none for a special token.

    Byte-level vocabularies (GPT-2, Qwen, Llama 3, DeepSeek) write each byte as one printable character. A piece in
    which every character is such a one stands for those bytes, any other piece (an added token) for its own UTF-8.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._special = {id for id, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._special.update(tokenizer.all_special_ids)
        self._known: dict[int, bytes] = {}

    def __call__(self, token: int) -> bytes:
        """The bytes of one token id; none for an id that the tokenizer does not know."""
        found = self._known.get(token)
        if found is None:
            found = self._known[token] = b"" if token in self._special else self._read(token)
        return found

    def _read(self, token: int) -> bytes:
        piece = self._tokenizer.convert_ids_to_tokens(token)
        if not piece:
            return b""
        if all(char in _BYTE_OF for char in piece):
            return bytes(_BYTE_OF[char] for char in piece)
        return str(piece).encode()


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 characters are themselves, the other bytes follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()


def char_offsets(data: bytes) -> list[int]:
    """Byte offset of each character of `data.decode("utf-8", "replace")`, and of its end."""
    lengths: list[int] = []
    at = 0
    while at < len(data):
        try:
            valid, bad = data[at:].decode(), 0
        except UnicodeDecodeError as error:
            valid, bad = data[at : at + error.start].decode(), error.end - error.start
        lengths.extend(len(char.encode()) for char in valid)
        at += sum(lengths[len(lengths) - len(valid) :]) + bad
        if bad:
            lengths.append(bad)
    return [0, *accumulate(lengths)]


def tokens_by_decoding(
    decode: Callable[[Sequence[int]], str], ids: Sequence[int], text: str, spans: Sequence[Span]
) -> list[Span]:
    """The tokens of each span of characters, for tokenizers whose pieces are no bytes: prefixes are decoded.

    A prefix of the tokens covers as many characters as it has in common with the whole text; the boundaries are found
    by bisection, about 2·log2(tokens) decodings a span.
    """

    def covered(count: int) -> int:
        head = decode(ids[:count]).rstrip(REPLACEMENT)
        if text.startswith(head):
            return len(head)
        return next(n for n, char in enumerate(head) if text[n : n + 1] != char)

    counts = range(len(ids) + 1)
    return [
        (bisect_right(counts, start, key=covered) - 1, min(bisect_left(counts, end, key=covered), len(ids)))
        for start, end in spans
    ]


def disjoint(spans: Sequence[Span]) -> list[Span]:
    """The spans, with a token that touches two steps left to the earlier one."""
    found: list[Span] = []
    for start, end in spans:
        begin = max(start, found[-1][1]) if found else start
        found.append((begin, max(begin, end)))
    return found
