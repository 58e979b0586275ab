"""The generated pages are current, and every setting, command and route has a sentence."""

import pytest
from pydantic import BaseModel

from downburst.settings.hub import Settings
from unit.documentation import settings_page
from unit.documentation.api_page import markdown as routes
from unit.documentation.commands_pages import pages as commands
from unit.documentation.settings_page import Setting, section_inside
from unit.documentation.write_reference import stale

SETTINGS = [setting for _, _, settings in settings_page.sections() for setting in settings]


def test_the_pages_are_current() -> None:
    assert stale() == [], "write them anew: cd tests && ../.venv/bin/python -m unit.documentation.write_reference"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_setting_has_a_sentence_and_a_type(setting: Setting) -> None:
    assert len(setting.field.description or "") > 10
    assert setting.kind
    assert "\n" not in setting.default


def test_no_setting_is_left_out() -> None:
    def below(model: type[BaseModel], prefix: str = "") -> list[str]:
        names = []
        for name, field in model.model_fields.items():
            inner, key = section_inside(field.annotation)
            names += below(inner, f"{prefix}{name}.{key}") if inner else [prefix + name]
        return names

    listed = {setting.path for setting in SETTINGS}
    assert [name for name in below(Settings) if name not in listed] == []


def test_numbers_have_units_where_they_are_no_counts() -> None:
    page = settings_page.markdown()
    assert "Unit: bits per second. Default: `400000000`. Environment: `DOWNBURST_MULTICAST__RATE_BPS`." in page
    assert [
        one.path for one in SETTINGS if one.unit == "" and one.path.endswith(("_s", "_ms", "_bps", "_bytes"))
    ] == []


def test_the_pages_have_what_people_look_for() -> None:
    put = next(text for path, text in commands().items() if path.name == "put.md")
    assert "downburst put [OPTIONS] FEED PRODUCT_ID FILES..." in put
    assert "`--hub` (default `http://127.0.0.1:7371`, environment `DOWNBURST_HUB`)" in put
    assert "| `GET /v1/feeds` |" in routes()
