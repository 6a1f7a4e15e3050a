"""What counts as a reply, and remembering it."""

import pytest

from verl_sql.generation.replies import UnusableReply, read_object

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
