"""Text on the pages reads as intended: words apart, headers whole, every link leads to a page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kit.capabilities import needs
from kit.page_hub import PATIENCE_MS, Hub, go
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    needs("chromium")
    with Hub(tmp_path / "hub") as started:
        yield started


def test_words_are_apart_headers_whole_and_links_lead_somewhere(hub: Hub, page: Page, tmp_path: Path) -> None:
    _fill(hub, tmp_path / "near")
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Sites")
    expect(page.get_by_test_id("site unl.edu")).to_contain_text("up to date", timeout=PATIENCE_MS)
    go(page, "Feeds")
    p99 = page.get_by_test_id("feed NGRID").locator("[data-label^=p99]")
    expect(p99).to_contain_text(re.compile(r"\d m?s"), timeout=PATIENCE_MS)
    go(page, "Relays")
    expect(page.get_by_test_id("relay campus")).to_contain_text("fans out NGRID to a local group")
    expect(page.get_by_test_id("tcp profile overseas").locator("[data-label=Values]")).to_have_text("bbr")
    waiting = ["#/", "#/trace/nam%2F3.grib2", "#/feeds/NGRID", "#/sites/unl.edu", "#/latency?site=unl.edu&feed=NGRID"]
    waiting += ["#/feeds?row=NGRID", "#/sites?row=unl.edu"]
    seen: set[str] = set(waiting)
    others: set[str] = set()
    glued: dict[str, list[str]] = {}
    while waiting:
        address = waiting.pop(0)
        _open(page, hub, address)
        assert page.get_by_test_id("no-such-page").count() == 0, f"a link leads to {address}, which is no page"
        if found := page.evaluate(GLUED):
            glued[address] = found
        for link in page.evaluate("[...document.querySelectorAll('a[href]')].map((it) => it.getAttribute('href'))"):
            if not link.startswith("#/"):
                others.add(link)
            elif _kind(link) not in {_kind(it) for it in seen}:
                seen.add(link)
                waiting.append(link)
    assert not glued, f"words touch, or a header is broken: {glued}"
    assert {_kind(it) for it in seen} >= {
        "",
        "alarms",
        "feeds",
        "sites",
        "circuits",
        "latency",
        "products",
        "tree",
        "relays",
        "volume",
        "users",
    }
    for link in others - {"#content"}:
        assert not re.match(r"\w+://", link), f"{link} leads away from the hub"
        answer = page.request.get(f"{hub.url}{link.removeprefix('./')}")
        assert answer.status < 400, f"{link}: {answer.status}"


def test_an_address_that_is_no_page_says_so_and_leads_on(hub: Hub, page: Page) -> None:
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Next steps")).to_be_visible()
    page.goto(f"{hub.url}#/nonsense")
    expect(page.get_by_role("heading", name="Page not found")).to_be_focused()
    expect(page.get_by_test_id("no-such-page")).to_contain_text("no page “nonsense”")
    expect(page).to_have_title(re.compile("Page not found"))
    page.get_by_test_id("no-such-page").get_by_role("link", name="Sites").click()
    expect(page.get_by_role("heading", name="Sites", exact=True)).to_be_visible()


def test_the_rule_finds_what_touches(page: Page) -> None:
    needs("chromium")
    page.set_content(
        "<p>up to date<span>since 3 s</span></p><p>fine <b>here</b>, and <i>there</i>.</p><p>done.<b>Next</b></p>"
        "<p>88.4 msin the minute</p><table style='width:1px'><thead><tr><th style='overflow-wrap:anywhere'>transport"
    )
    assert page.evaluate(GLUED) == ["up to date|since 3 s", "done.|Next", "88.4 msin the minute", "header: transport"]


def _kind(link: str) -> str:
    """Reduces pages of the same kind, which differ by names and figures, to one."""
    path = link.removeprefix("#/").partition("?")[0]
    word, _, name = path.partition("/")
    return f"{word}/…" if name else word


def _open(page: Page, hub: Hub, address: str) -> None:
    page.goto(f"{hub.url}{address}")
    expect(page.locator("main h2").first).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_timeout(300)
    page.evaluate("document.querySelectorAll('main details').forEach((it) => (it.open = true))")


def _fill(hub: Hub, directory: Path) -> None:
    """A feed with a site that receives it, one that never connected, a relay, a TCP profile, and a trace to show."""
    hub.post("feeds", feed="NGRID", **{"class": "grid"})
    for site in ("unl.edu", "away.edu"):
        hub.post("sites", site=site, organisation="University", contact=f"ops@{site}")
        hub.post(f"sites/{site}/subscriptions", feed="NGRID", not_pattern="^other")
    hub.command("relays", "add", "campus", "--address", "127.0.0.1:7379", "--fan-out", "group", "--feeds", "NGRID")
    profile = {"prefix": "192.0.2.0/24", "knobs": {"congestion": "bbr"}}
    hub.client.put("/v1/tcp-profiles/overseas", json=profile).raise_for_status()
    hub.receive("unl.edu", directory)
    wait_for("the site", lambda: any(one["connected"] for one in hub.client.get("/v1/overview").json()["sites"]))
    for number in range(12):
        hub.put("NGRID", f"nam/{number}.grib2", bytes(5_000 + 1_000 * number))


GLUED = r"""() => {
  const found = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const unread = '[aria-hidden=true], .visually-hidden, script, style, pre, code, svg'
  const hidden = (node) => node.parentElement.closest(unread)
  const rects = (node) => {
    const range = document.createRange()
    range.selectNodeContents(node)
    return [...range.getClientRects()]
  }
  const touching = /\d (ms|min|s|h|kB|MB|GB)(in|at|of|since|for|to)\b|\p{Ll}[.;,]\p{Lu}\p{Ll}/u
  let before = null
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.data.trim() === '' || hidden(node)) continue
    const boxes = rects(node).filter((box) => box.width > 0)
    if (boxes.length === 0) continue
    if (before) {
      const last = before.boxes.at(-1), first = boxes[0]
      const oneLine = Math.abs(last.bottom - first.bottom) < 3 && Math.abs(first.left - last.right) < 1
      if (oneLine && /[\p{L}\p{N}.,;:)…]$/u.test(before.text) && /^[\p{L}\p{N}(]/u.test(node.data)) {
        found.push(`${before.text.trim().slice(-30)}|${node.data.trim().slice(0, 30)}`)
      }
    }
    if (touching.test(node.data)) found.push(node.data.trim().slice(0, 60))
    before = { text: node.data, boxes }
  }
  for (const header of document.querySelectorAll('thead th')) {
    for (const node of header.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE) continue
      for (const word of node.data.matchAll(/\S+/g)) {
        const range = document.createRange()
        range.setStart(node, word.index)
        range.setEnd(node, word.index + word[0].length)
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)))
        if (lines.size > 1) found.push(`header: ${word[0]}`)
      }
    }
  }
  return found
}"""
"""Text nodes that follow each other on a line without a gap, units that touch the next word, and broken headers."""
