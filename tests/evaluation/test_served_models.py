"""How models are named on the command line."""

from pathlib import Path

import pytest

from verl_sql.evaluation.served_models import Served, ServedModelError, check_served, engine_arguments, make_sampler
from verl_sql.generation.endpoint import EndpointSampler

NONE = [Served(), Served()]


def test_engine_arguments_are_json_where_they_are() -> None:
    found = engine_arguments(["dtype=float32", "enforce_eager=true", "max_model_len=4096", "quantization=fp8", "x=0.4"])
    assert found == {"dtype": "float32", "enforce_eager": True, "max_model_len": 4096, "quantization": "fp8", "x": 0.4}
    with pytest.raises(ServedModelError, match="KEY=VALUE, not 'eager'"):
        engine_arguments(["eager"])


def test_how_a_run_notes_them() -> None:
    assert [str(s) for s in (Served("folder"), Served(url="http://x/v1", name="m"), Served())] == [
        "folder",
        "http://x/v1 m",
        "",
    ]


def test_an_endpoint_is_not_loaded() -> None:
    assert isinstance(make_sampler(Served(url="http://127.0.0.1:9/v1"), 0), EndpointSampler)


REFUSED = [
    (Served(), NONE, "either by --model or by --base-url"),
    (Served("m", "http://x/v1"), NONE, "either by --model or by --base-url"),
    (Served("/no/such"), NONE, "--model /no/such is not a folder"),
    (Served("hub/name"), [Served("./prm"), Served()], "--prm ./prm is not a folder"),
    (Served("hub/name"), [Served(), Served(url="http://x")], "--orm-url needs the folder"),
    (Served("hub/name"), [Served("hub/prm", kind="onnx"), Served()], "--scorer onnx is neither"),
]


@pytest.mark.parametrize(("policy", "models", "message"), REFUSED)
def test_refused_before_anything_is_loaded(policy: Served, models: list[Served], message: str) -> None:
    with pytest.raises(ServedModelError, match=message):
        check_served(policy, models)


def test_folders_and_hub_names_pass(tmp_path: Path) -> None:
    with pytest.raises(ServedModelError, match="holds no model: there is no config"):
        check_served(Served(str(tmp_path)), NONE)
    (tmp_path / "config.json").write_text("{}")
    check_served(Served(str(tmp_path)), [Served("org/prm"), Served(str(tmp_path), "http://x")])
    assert make_sampler(Served(url="http://x/v1", name="m"), 0).base_url == "http://x/v1"  # type: ignore[attr-defined]
