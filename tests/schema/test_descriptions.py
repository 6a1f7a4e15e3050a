"""Description CSVs in every broken shape, and all of BIRD dev's."""

from pathlib import Path

import pytest

from verl_sql.database.introspect import read_schema
from verl_sql.schema.descriptions import decode, load_descriptions, read_description_file

CP1252 = {
    "european_football_2/Player_Attributes.csv",
    "european_football_2/Team_Attributes.csv",
    "formula_1/qualifying.csv",
    "student_club/budget.csv",
}
WITH_BOM = {
    *(f"california_schools/{name}.csv" for name in ("frpm", "satscores", "schools")),
    *(
        f"debit_card_specializing/{name}.csv"
        for name in ("customers", "gasstations", "products", "transactions_1k", "yearmonth")
    ),
    *(f"financial/{n}.csv" for n in ("account", "card", "client", "disp", "district", "loan", "order", "trans")),
    *(f"thrombosis_prediction/{name}.csv" for name in ("Examination", "Laboratory", "Patient")),
}


def test_bom_crlf_padding_multi_line_and_sixth_header(shop_file: Path) -> None:
    found = load_descriptions(shop_file.parent / "database_description")
    assert found.column("SHOP", "id").meaning == "the unique number"
    assert found.column_comment("shop", "shop name") == "readable name"
    assert found.column_comment("shop", "opened") == ""


def test_cp1252_and_values(shop_file: Path) -> None:
    found = load_descriptions(shop_file.parent / "database_description", with_values=True)
    assert found.column_comment("order", "line") == "position–from 1 (commonsense evidence: 1 is the first)"


def test_columns_that_do_not_exist_are_reported(shop_file: Path) -> None:
    found = load_descriptions(shop_file.parent / "database_description")
    assert found.problems(read_schema(shop_file)) == ["shop.gone: described, but there is no such column"]


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_descriptions(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "\n", "a,b\n1,2\n", "original_column_name\n\n , \n", "original_column_name,x\n"])
def test_files_without_descriptions(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert read_description_file(tmp_path / "t.csv") == {}


def test_short_rows_and_bytes_that_cp1252_lacks(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"original_column_name,column_name,column_description\nid,\xff\x81\nx,y,z,more\n")
    found = read_description_file(tmp_path / "t.csv")
    assert found["id"].name == "ÿ\\x81"
    assert found["x"].meaning == "z"


def bird_files(shared: Path) -> list[Path]:
    return sorted((shared / "data/bird/dev_databases").glob("*/database_description/*.csv"))


def test_all_of_bird_dev_load(shared_dir: Path) -> None:
    files = bird_files(shared_dir)
    assert len(files) == 75
    assert [f for f in files if not read_description_file(f)] == []


def test_odd_encodings_by_name(shared_dir: Path) -> None:
    names = {f"{f.parent.parent.name}/{f.name}": f.read_bytes() for f in bird_files(shared_dir)}
    assert {name for name, raw in names.items() if raw.startswith(b"\xef\xbb\xbf")} == WITH_BOM
    not_utf8 = set()
    for name, raw in names.items():
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            not_utf8.add(name)
    assert not_utf8 == CP1252
    assert not any("\ufeff" in decode(raw) for raw in names.values())
    # One file holds replacement characters of its own; reading adds none.
    assert {name for name, raw in names.items() if "\ufffd" in decode(raw)} == {"student_club/zip_code.csv"}
