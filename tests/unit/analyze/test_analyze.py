"""`downburst analyze`: tables, one JSON document, a page, what-if, and one sentence about bad input."""

import gzip
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from downburst_app.cli.analyze import analyze
from unit.scheduler.feeds import shared_data

FIRST_SEED = int(os.environ.get("DOWNBURST_SEED", "1"))
APP = typer.Typer()
APP.command()(analyze)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A product of 100 kB every half second for a minute."""
    path = tmp_path / "steady.txt"
    path.write_text("".join(f"100000 201506150000{n // 2 % 60:02d}.{n % 2 * 5}00\n" for n in range(120)))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(APP, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), "never a stack trace"
    return done.exit_code, done.stdout, done.stderr


def document(*arguments: object) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_tables_end_in_the_sentence(trace: Path) -> None:
    code, out, _ = run(trace, "--sites", 5)
    assert code == 0
    assert "products, volume, span" in out
    assert "silence longer than" in out
    assert out.splitlines()[-1].startswith("multicast: one group of 5 sites, p99")
    assert "not unicast: it costs" in out.splitlines()[-1]


def test_json_holds_the_figures_the_candidates_and_the_choice(trace: Path) -> None:
    found = document(trace, "--sites", 5)
    assert found["transport"] == "multicast"
    assert found["reason"].startswith("multicast: one group of 5 sites")
    assert found["traffic"]["products"] == 120
    assert [one["feasible"] for one in found["candidates"]] == [True, True, False, False]
    assert found["candidates"][0]["predicted"]["egress_bps"] == pytest.approx(5 * 1.61e6, rel=0.01)
    assert found["egress_by_sites"][-1]["sites"] == 5


def test_the_recorded_hour_has_the_published_figures() -> None:
    seen = document(shared_data() / "traces" / "ngrid-20150615T00-1h.txt")["traffic"]
    assert (seen["products"], seen["bytes"]) == (28_166, pytest.approx(5.55e9, rel=0.02))
    assert seen["sizes"]["quantiles_bytes"]["p50"] == pytest.approx(39e3, rel=0.02)
    assert seen["silence"][1]["share_of_time"] == pytest.approx(0.52, rel=0.02)
    assert [seen["widths"][width]["peak_to_mean"] for width in ("1", "10", "60")] == pytest.approx(
        [36, 5.0, 2.2], rel=0.02
    )


@pytest.mark.parametrize(
    ("options", "transport"),
    [
        (["--sites", 1], "unicast"),
        (["--sites", 2], "unicast"),
        (["--sites", 30, "--egress", "10M"], "multicast"),
        (["--sites", 5, "--multicast-rate", "1M"], "unicast"),
        (["--sites", 5, "--no-multicast"], "unicast"),
        (["--sites", 5, "--no-multicast", "--order", "shortest-first"], "unicast"),
        (["--sites", 30, "--egress", "10M", "--no-multicast", "--circuits", "point-to-point"], "static-circuit"),
        (["--sites", 5, "--no-multicast", "--circuits", "both", "--loss", "5%", "--rtt", "200ms"], "multicast"),
    ],
)
def test_what_if(trace: Path, options: list[object], transport: str) -> None:
    assert document(trace, *options)["transport"] == transport


def test_the_objective_is_judged(trace: Path) -> None:
    assert "over the objective of 0.001 s" in run(trace, "--objective", "p99=1ms")[1]


def test_a_slow_line_is_alone_in_its_group(trace: Path) -> None:
    groups = document(trace, "--sites", 5, "--access", "4M,100M*4")["groups"]["groups"]
    assert [len(group["sites"]) for group in groups] == [1, 4]


class Opened(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attributes if name in ("src", "href", "data", "srcset")]


def test_the_page_has_its_plots_and_loads_nothing(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert run(trace, "--html", out, "--circuits", "both")[0] == 0
    text = out.read_text()
    opened = Opened()
    opened.feed(text)
    assert opened.tags.count("svg") == 6
    assert "script" not in opened.tags
    assert opened.fetched == []
    assert not re.search(r"https?://|@import|url\(|nan|inf\b", text)
    assert text.count("<polyline") >= 10


def test_the_page_draws_who_goes_at_whose_pace(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert run(trace, "--sites", 5, "--access", "40M*2,100M*3", "--html", out)[0] == 0
    figure = out.read_text().partition("Groups: sites in order of their lines")[2].partition("</figure>")[0]
    drawn = re.findall(r'points="([^"]+)"', figure)
    assert [len(points.split()) for points in drawn] == [5, 5]
    lines, paces = ([point.split(",")[1] for point in points.split()] for points in drawn)
    assert lines == paces, "two groups, each at the pace of its lines"
    assert len(set(paces)) == 2


@pytest.mark.parametrize(
    ("content", "option", "says"),
    [
        (
            "20160929010000 20160929010001 host.edu NGRID a_v_b 5 500 0.5 0.6 1@0000 6.13\n",
            "--html",
            "holds reports, which have no page",
        ),
        ("size,time_s\n5,0\n5,1\n", "--counters", "holds products and --counters belongs to transfers"),
        ("size,time_s\n5,0\n5,1\n", "--export", "holds products and --export belongs to transfers"),
    ],
)
def test_an_option_without_a_use_is_refused(tmp_path: Path, content: str, option: str, says: str) -> None:
    file, given = tmp_path / "file.csv", tmp_path / "given"
    file.write_text(content)
    code, out, err = run(file, option, given)
    assert (code, out, given.exists()) == (2, "", False)
    assert says in err


def test_names_are_escaped_on_the_page(trace: Path, tmp_path: Path) -> None:
    odd = tmp_path / "<b>&.txt"
    odd.write_bytes(trace.read_bytes())
    run(odd, "--html", tmp_path / "report.html")
    assert "&lt;b&gt;&amp;.txt" in (tmp_path / "report.html").read_text()


def test_a_packed_csv_is_read(tmp_path: Path) -> None:
    packed = tmp_path / "feed.csv.gz"
    packed.write_bytes(gzip.compress(b"size,time_s\n" + b"".join(b"1000,%d\n" % n for n in range(50))))
    assert document(packed)["traffic"]["bytes"] == 50_000


def test_a_log_of_transfers_gives_sessions(tmp_path: Path) -> None:
    log = tmp_path / "gridftp.csv"
    rows = "".join(f"{n * 10},5,100000000,{'ab'[n % 2]}\n" for n in range(10))
    log.write_text(f"start_s,duration_s,size_bytes,peer\n{rows}")
    found = document(log)["sessions"]
    assert (found["transfers"], found["sessions"], found["counted_sessions"]) == (10, 2, 2)
    assert "transfers, peers, sessions" in run(log)[1]
    log.write_text(f"start_s,duration_s,size_bytes,peer\n{rows}0,1,1,a\n")
    assert run(log)[0] == 2
    assert run(log, "--sort")[0] == 0


def test_a_log_of_transfers_tells_what_throughput_depends_on(tmp_path: Path) -> None:
    log, host = tmp_path / "gridftp.csv", tmp_path / "host.csv"
    slow = [n // 6 % 3 == 0 for n in range(120)]
    rows = "".join(f"{n * 10},{5 if slow[n] else 1},100000000,a\n" for n in range(120))
    log.write_text(f"start_s,duration_s,size_bytes,peer\n{rows}")
    host.write_text("time_s,iowait\n" + "".join(f"{n * 10},{0.9 if slow[n] else 0.1}\n" for n in range(120)))
    assert document(log)["throughput"]["transfers"] == 120
    found = document(log, "--counters", host)["throughput"]
    assert found["factors"][0]["name"] == "iowait"
    assert found["factors"][0]["explained"] > 0.95
    page = tmp_path / "page.html"
    out = run(log, "--counters", host, "--html", page)[1]
    opened = Opened()
    opened.feed(page.read_text())
    assert (opened.tags.count("table"), opened.fetched) == (3, [])
    assert "Iowait explains most of the variance" in page.read_text()
    assert out.rstrip().endswith("so there is no evidence that a circuit would help.")
    assert run(log, "--counters", tmp_path / "none.csv")[0] == 2


def test_reports_give_latencies_by_feed() -> None:
    recorded = shared_data() / "traces" / "rtstats-20160929.txt"
    feeds = {one["feed"]: one for one in document(recorded)["feeds"]}
    assert sum(one["lines"] for one in feeds.values()) == 3_128, "of 3,132 lines: two reports are broken into three"
    assert sum(one["negative"] for one in feeds.values()) == 52
    assert feeds["NEXRAD2"]["latency_quantiles_s"]["p50"] == pytest.approx(0.9, rel=0.1)
    assert feeds["CONDUIT"]["latency_quantiles_s"]["p50"] == pytest.approx(9.5, rel=0.1)
    assert "clock errors" in run(recorded)[1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "feed.txt, line 1: the file holds no product"),
        ("5 20150615000000.000\n", "feed.txt, line 1: the file ends after 1 product"),
        ("5 20150615000000.000\noops\n", "feed.txt, line 2: 'oops' is not an arrival"),
        ("5 20150615000001.000\n5 20150615000000.000\n", "feed.txt, line 2: its time is before"),
        ("-5 20150615000001.000\n", "feed.txt, line 1: '-5 2015"),
        ("nan 20150615000001.000\n", "feed.txt, line 1: 'nan 2015"),
        ("5 20150615000000.000\n5,20150615000000\n", "feed.txt, line 2: '5,2015"),
        ("start,duration_s,size_bytes,peer\n", "feed.txt, line 1: the log has no transfers"),
        ("0 20150615000000.000\n0 20150615000001.000\n", "feed.txt: all products are empty"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    feed = tmp_path / "feed.txt"
    feed.write_text(content)
    code, out, err = run(feed)
    assert (code, out) == (2, "")
    assert err.startswith(sentence)
    assert err.count("\n") == 1


def test_products_of_7_gb_are_studied(tmp_path: Path) -> None:
    feed = tmp_path / "feed.txt"
    feed.write_text("7336804379 20250203000000.000\n7329259627 20250203120000.000\n")
    assert document(feed)["traffic"]["sizes"]["quantiles_bytes"]["max"] == 7_336_804_379


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 40))
def test_changed_digits_end_in_figures_or_in_a_sentence(tmp_path: Path, seed: int) -> None:
    """`DOWNBURST_SEED=n` begins at the seed n, which is in the test's name."""
    random = Random(seed)
    columns, line = random.choice(SHAPES)
    content = bytearray(columns + b"".join(line % {b"n": n, b"s": n % 60} for n in range(40)))
    for _ in range(3):
        place = random.choice([at for at, byte in enumerate(content) if byte in b"0123456789"])
        content[place : place + 1] = random.choice([b"0", b"9", b"000", b"99999", b"1e9", b"."])
    feed = tmp_path / "feed"
    feed.write_bytes(content)
    code, out, err = run(
        feed, "--json", "--sort", "--circuits", "both", "--loss", "3%", "--html", tmp_path / "f.html"
    )
    assert code in (0, 2)
    assert json.loads(out) if code == 0 else err.count("\n") == 1


SHAPES = [
    (b"", b"%(n)d000 201506150000%(s)02d.500\n"),
    (b"size,time_s\n", b"%(n)d0,%(n)d\n"),
    (b"start,duration_s,size,peer\n", b"%(n)d,%(n)d,%(n)d00000000,a\n"),
]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--egress", "much"], "'much' is not a rate"),
        (["--egress", "0"], "'0' is not a rate"),
        (["--rtt", "-1s"], "'-1s' is not a duration"),
        (["--loss", "120%"], "'120%' is not a share"),
        (["--objective", "soon"], "'soon' is not an objective"),
        (["--objective", "p99=0"], "must be above zero"),
        (["--circuits", "some"], "'some' is not an offer"),
        (["--access", "10M*0"], "'10M*0' has no number of sites"),
        (["--access", "1M*9", "--sites", 3], "names 9 sites and there are 3"),
        (["--html", "/proc/none/x.html"], "can't be written"),
    ],
)
def test_bad_options_are_one_sentence(trace: Path, options: list[object], says: str) -> None:
    code, _, err = run(trace, *options)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    code, _, err = run(tmp_path / "none.txt")
    assert code == 2
    assert "can't be read" in err


def test_a_stated_floor_is_in_every_latency(trace: Path) -> None:
    bare, floored = document(trace), document(trace, "--floor", "70ms")
    for before, after in zip(bare["candidates"], floored["candidates"], strict=True):
        if before["predicted"]:
            for name, seconds in before["predicted"]["latency_s"].items():
                assert after["predicted"]["latency_s"][name] == pytest.approx(seconds + 0.07)
    assert floored["assumed"]["floor_ms"] == 70.0
