"""Values remembered on disk."""

from pathlib import Path

import pytest

from verl_sql.generation.file_cache import FileCache


def test_a_value_is_remembered_by_what_was_asked(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, str)
    chat = [{"role": "user", "content": "é"}]
    key = cache.key("m", chat)
    assert cache.get(key) is None
    cache.put(key, "said")
    assert FileCache(tmp_path, str).get(key) == "said"
    assert len({key, cache.key("n", chat), cache.key("m", [{"role": "user", "content": "e"}])}) == 3


@pytest.mark.parametrize(
    "content", ['{"value": "sai', "[]", '{"value": 3}', '{"value": true}', '{"reply": "said"}', ""]
)
@pytest.mark.parametrize("form", [str, float])
def test_a_damaged_file_counts_as_nothing_and_is_replaced(form: type, content: str, tmp_path: Path) -> None:
    cache = FileCache(tmp_path, form)
    key = cache.key("m", [])
    cache.put(key, form(1))
    next(tmp_path.rglob("*.json")).write_text(content)
    assert cache.get(key) is None
    cache.put(key, form(1))
    assert cache.get(key) == form(1)
    assert not list(tmp_path.rglob("*.tmp"))
