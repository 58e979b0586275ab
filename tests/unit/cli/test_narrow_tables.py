"""Tables of commands at 80 columns, with the recorded answers of the API: lines fit, and names stay whole."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst_app.cli import main
from downburst_app.cli.columns import Further, chosen, least_widths, natural_width, table_width

ANSWERS = json.loads((Path(__file__).parents[2] / "golden" / "api-answers.json").read_text())
COMMANDS = {
    "status": ["NGRID", "cma.example", "multicast", "+1.5"],
    "feeds list": ["NGRID", "warning"],
    "feeds show NGRID": ["id-and-content"],
    "feeds outcomes NGRID": ["unl.edu"],
    "sites list": ["cma.example", "new.example", "away"],
    "sites show unl.edu": ["NGRID", "192.0.2.1"],
    "subscriptions list": ["cma.example", "NGRID"],
    "resends list": ["unl.edu", "NGRID", "waiting"],
    "upstreams list": ["national"],
    "bridges list": ["dwd", "NGRID"],
    "bridges show dwd": ["mqtts://globalbroker.example", "wss://second.example/mqtt", "de-dwd", "connected"],
    "bridges failed dwd": ["de-dwd/1"],
    "bridges holes dwd": ["mqtts://globalbroker.example"],
    "publishers list": ["gfs", "NGRID"],
    "publishers show gfs": ["us-unidata/gfs/gfs.t00z.grib2"],
    "ldm sources": ["conduit", "idd-a.example"],
    "ldm reports": ["NEXRAD2"],
    "ports list": ["hub-eth0", "unl.edu"],
    "circuits list": ["unl.edu", "degraded"],
    "circuits show 1": ["admitted"],
    "circuits offers list": ["overseas", "unl-eth1"],
    "circuits providers list": ["https://nsi.example/soap/connection/provider"],
    "circuits orders": ["campus", "unl.edu"],
    "topology show": ["unl-eth1"],
    "plans list": ["NGRID", "multicast"],
    "plans show NGRID": ["static-circuit"],
    "plans history NGRID": ["NGRID"],
    "trace nam.t00z.grib2": ["cma.example", "unl.edu", "waiting"],
    "deliveries --missing": ["cma.example", "rejected"],
    "tcp-profiles list": ["overseas", "2001:db8::/32"],
    "relays list": ["lincoln", "cma.example"],
    "relays show lincoln": ["unl.edu"],
    "relays log lincoln": ["unl.edu"],
    "siblings list": ["cma.example"],
    "probe list": ["unl.edu"],
    "probe show 1": ["11.000%"],
    "probe schedule list": ["unl.edu"],
    "measurements list": ["latency"],
    "alarms list": ["warning"],
    "alarms silences": ["cma.example"],
    "objectives list": ["unl.edu"],
    "latency": ["cma.example", "multicast", "distribution"],
    "users list": ["admin@new.example", "operator"],
    "tokens list": ["prometheus"],
    "requests list": ["third.example"],
}
"""Command line to words of its table that stay whole."""


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def request(method: str, url: str, **_: Any) -> httpx.Response:
        path = httpx.URL(url).path
        found = [one for one in ANSWERS if one["status"] < 300 and _is_of(one["route"], f"{method} {path}")]
        named = path.split("/")[3] if path.count("/") > 2 else ""
        # A route with a name has an answer of each: that of this one is best.
        best = min(found, key=lambda one: (bool(one["query"]), f'"{named}"' not in one["text"][:60]))
        return httpx.Response(best["status"], text=best["text"], request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", staticmethod(request))


def _is_of(route: str, asked: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", route), asked) is not None


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    assert not end.value.code
    return capsys.readouterr().out.splitlines()


def rows_of(lines: list[str]) -> list[str]:
    return [line for line in lines if line[:1] in "┏┃┡│└"]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("command", "words"), COMMANDS.items())
def test_a_table_fits_eighty_columns_and_keeps_its_names_whole(
    command: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = rows_of(printed(capsys, *command.split()))
    assert rows
    assert max(map(len, rows)) <= 80
    whole = {word for row in rows for cell in re.split("[│┃]", row) for word in cell.split()}
    assert set(words) <= whole


@pytest.mark.usefixtures("recorded")
def test_wide_shows_all_columns_in_one_line_a_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    narrow, wide = (rows_of(printed(capsys, "sites", "list", *option)) for option in ((), ("--wide",)))
    assert "organisation" not in narrow[1]
    assert all(head in wide[1] for head in ("site", "organisation", "state", "behind by", "may take", "multicast"))
    sites = sum(one["route"] == "GET /v1/sites" and not one["query"] for one in ANSWERS)
    assert sites == 1
    assert [row.count("│") for row in wide if row.startswith("│")] == [7] * (len(wide) - 4)
    assert any("away since 2026-01-01 00:00:00 UTC: the site ended" in row for row in wide)


@pytest.mark.usefixtures("recorded")
def test_a_wide_terminal_shows_all_columns_unasked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    assert rows_of(printed(capsys, "sites", "list")) == rows_of(printed(capsys, "sites", "list", "--wide"))


def test_names_keep_their_width_and_other_words_give_way() -> None:
    columns, rows = ("site", "feed", "note"), [["a" * 30, "b" * 20, "c" * 50]]
    assert least_widths(columns, rows, within=200) == [30, 20, 50]
    assert least_widths(columns, rows, within=80) == [30, 20, 20]
    assert table_width(least_widths(columns, rows, within=80)) == 80
    # Names that alone exceed the width are not broken: a terminal wraps the line.
    assert least_widths(columns, rows, within=40) == [30, 20, 4]


def test_further_columns_are_chosen_on_request() -> None:
    columns = ("site", Further("note"), "state")
    assert chosen(columns, wide=False) == [0, 2]
    assert chosen(columns, wide=True) == [0, 1, 2]
    assert natural_width(columns, [["unl.edu", "two words", "on"]]) == 7 + 9 + 5 + 10
