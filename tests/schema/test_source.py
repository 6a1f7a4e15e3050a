"""Schema texts for questions: every form and scope, read once a database."""

from pathlib import Path

import pytest

from verl_sql.database.introspect import read_schema
from verl_sql.schema import source as module
from verl_sql.schema.descriptions import load_descriptions
from verl_sql.schema.render import SchemaForm, render_schema
from verl_sql.schema.restrict import SchemaScope, Selection
from verl_sql.schema.source import SchemaSource

ASKED = ("Which shop opened first?", "", 'SELECT "shop name" FROM shop ORDER BY opened LIMIT 1')


@pytest.mark.parametrize("form", SchemaForm)
def test_the_full_text_is_that_of_render_schema(shop_file: Path, form: SchemaForm) -> None:
    descriptions = load_descriptions(shop_file.parent / "database_description")
    assert SchemaSource(form).text(shop_file, "shop", *ASKED) == render_schema(shop_file, form, descriptions)


@pytest.mark.parametrize("form", SchemaForm)
def test_gold_items_in_every_form(shop_file: Path, form: SchemaForm) -> None:
    text = SchemaSource(form, SchemaScope.GOLD).text(shop_file, "shop", *ASKED)
    assert "opened" in text
    assert "mail" not in text
    assert "line" not in text


def test_scopes(shop_file: Path) -> None:
    def text(scope: SchemaScope, **more: object) -> str:
        return SchemaSource(SchemaForm.COMPACT, scope, **more).text(shop_file, "shop", *ASKED)

    assert text(SchemaScope.GOLD_TABLES) == 'shop(id, "shop name", opened, mail, note, price)'
    assert text(SchemaScope.GOLD) == 'shop(id, "shop name", opened)'
    assert text(SchemaScope.LINKED) == 'shop(id, "shop name", opened)\norder(shop_id, line)\norder.shop_id=shop.id'
    assert text(SchemaScope.LINKED_AND_GOLD, linker=lambda *_: Selection(columns=frozenset({("shop", "mail")}))) == (
        'shop(id, "shop name", opened, mail)'
    )


def test_a_linker_of_ones_own_sees_the_question_not_the_gold(shop_file: Path) -> None:
    seen = []

    def linker(db_id: str, question: str, evidence: str) -> Selection:
        seen.append((db_id, question, evidence))
        return Selection(frozenset({"order"}))

    text = SchemaSource(SchemaForm.COMPACT, SchemaScope.LINKED, linker=linker).text(shop_file, "shop", *ASKED)
    assert text == "order(shop_id, line)"
    assert seen == [("shop", ASKED[0], "")]


def test_without_a_database(shop_file: Path) -> None:
    text = SchemaSource(SchemaForm.MSCHEMA, SchemaScope.GOLD).text_without_database(read_schema(shop_file), *ASKED)
    assert "(shop name:TEXT)" in text
    assert "Examples" not in text


def test_a_database_is_read_once(shop_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    original = module.open_for_reading
    monkeypatch.setattr(module, "open_for_reading", lambda path: opened.append(path) or original(path))
    source = SchemaSource(SchemaForm.MSCHEMA, SchemaScope.GOLD, examples=2)
    for _ in range(5):
        source.text(shop_file, "shop", *ASKED)
    assert len(opened) == 1
