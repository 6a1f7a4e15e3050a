"""What counts as a reply, and remembering it."""

from pathlib import Path

import pytest

from verl_sql.generation.replies import ReplyCache, UnusableReply, read_object

FORMS = {"reason": str, "correct": bool}


@pytest.mark.parametrize(
    "text",
    [
        '{"reason": "r", "correct": true}',
        ' \n{"correct": true, "reason": "r"}\n',
        '```json\n{"reason": "r", "correct": true}\n```',
        '<think>{"reason": "no", "correct": false}</think>\n{"reason": "r", "correct": true}',
    ],
)
def test_usable(text: str) -> None:
    assert read_object(text, FORMS) == {"reason": "r", "correct": True}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object"),
        ("It is right.", "no JSON object"),
        ('Sure: {"reason": "r", "correct": true}', "no JSON object"),
        ('{"reason": "r", "correct": true} {"reason": "r", "correct": false}', "no JSON object"),
        ('{"reason": "r", "correct": tr', "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ('[{"reason": "r", "correct": true}]', "not an object with the keys"),
        ('{"correct": true}', "not an object with the keys"),
        ('{"reason": "r", "correct": true, "sure": 1}', "not an object with the keys"),
        ('{"reason": "r", "correct": "false"}', "correct is no bool"),
        ('{"reason": "r", "correct": 0}', "correct is no bool"),
        ('{"reason": null, "correct": true}', "reason is no str"),
    ],
)
def test_unusable(text: str, why: str) -> None:
    with pytest.raises(UnusableReply, match=why):
        read_object(text, FORMS)


def test_a_reply_is_remembered_by_model_and_chat(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    chat = [{"role": "user", "content": "é"}]
    key = cache.key("m", chat)
    assert cache.get(key) is None
    cache.put(key, "said")
    assert ReplyCache(tmp_path).get(key) == "said"
    assert len({key, cache.key("n", chat), cache.key("m", [{"role": "user", "content": "e"}])}) == 3


@pytest.mark.parametrize("content", ['{"reply": "sai', "[]", '{"reply": 3}', ""])
def test_a_damaged_file_counts_as_nothing(content: str, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    key = cache.key("m", [])
    cache.put(key, "said")
    next(tmp_path.glob("*/*.json")).write_text(content, encoding="utf-8")
    assert cache.get(key) is None
