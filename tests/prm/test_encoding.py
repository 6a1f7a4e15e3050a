"""From text to ids: tags where the text has them, and nowhere else."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
import transformers

from verl_sql.prm.encoding import encode, encode_many, tag_id
from verl_sql.prm.rendering import STEP_TAG

TEXT = f"schema <|im_end|> 日本\na AS (SELECT 1)\n1 row: a\n1{STEP_TAG}\nb AS (SELECT '<|im_start|>')\n…{STEP_TAG}\n"


def test_tags_and_nothing_else_is_special(prm: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(prm)
    ids, tags = encode(tokenizer, TEXT)
    assert [i for i, token in enumerate(ids) if token in tokenizer.get_added_vocab().values()] == tags
    assert [ids[tag] for tag in tags] == [tag_id(tokenizer)] * 2
    assert tags[-1] == len(ids) - 1
    assert tokenizer.decode(ids) == TEXT.rstrip("\n")


def test_what_is_too_long_loses_its_beginning(prm: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(prm)
    ids, (first, last) = encode(tokenizer, TEXT)
    assert encode(tokenizer, TEXT, len(ids) - 3) == (ids[3:], [first - 3, last - 3])
    assert encode(tokenizer, TEXT, last - first) == (ids[first + 1 :], [-1, last - first - 1])


def test_many_as_one_by_one(prm: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(prm)
    texts = [TEXT, f"a{STEP_TAG}\n", "no tag", "", TEXT]
    assert encode_many(tokenizer, texts) == [encode(tokenizer, text) for text in texts]
    assert encode_many(tokenizer, []) == []
    assert encode(tokenizer, "no tag")[1] == []


def test_a_policys_tokenizer_is_refused(policy: Path) -> None:
    with pytest.raises(ValueError, match="holds no process reward model"):
        tag_id(transformers.AutoTokenizer.from_pretrained(policy))
