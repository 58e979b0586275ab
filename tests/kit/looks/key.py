"""The key of the twelve questions: the answers of the hub's own routes, a line each."""

from typing import Any

import httpx

from kit.looks.fleet import LATE
from kit.looks.late_product import FEED, PRODUCT
from kit.looks.served import HEADERS

Answer = dict[str, Any]


def key_of(url: str) -> dict[str, str]:
    """The answers of a hub to all questions, by their numbers."""
    with httpx.Client(base_url=f"{url}v1/", headers=HEADERS, timeout=60) as client:

        def ask(route: str, **query: str | int) -> Answer:
            answer: Answer = client.get(route, params=query).raise_for_status().json()
            return answer

        overview = ask("overview")
        week_ago = ask("latency/history", feed=FEED, site=LATE, minutes=5, until="2026-03-07T15:09:26Z")
        now = ask("latency/history", feed=FEED, site=LATE, minutes=5)
        found = _of_now(ask("now/incidents"), ask("now/history"), ask("now/strip"))
        found |= _of_feeds(overview) | {"Q8": f"{LATE}: {_worst(now)} ms now, {_worst(week_ago)} ms a week before"}
        found["Q9"] = f"{ask('latency/histogram', feed=FEED, site=LATE, minutes=1_440)['figures']['bound']} ms"
        placed = {site["site"] for site in ask_all(client, "sites") if site["place"]["latitude"] is not None}
        sites = [site for site in overview["sites"] if not site["relay"]]
        down = [site["site"] for site in sites if not site["connected"]]
        nowhere = [site["site"] for site in sites if site["site"] not in placed]
        found["Q10"] = f"{len(down)} down, {len(nowhere)} of {len(sites)} without a place"
        return found | {"Q11": _relayed(ask("tree")), "Q12": _slowest(ask("products/trace", product=PRODUCT))}


def ask_all(client: httpx.Client, route: str) -> list[Answer]:
    """The first page of a list."""
    listed: list[Answer] = client.get(route).raise_for_status().json()
    return listed


def _of_now(incidents: Answer, history: Answer, strip: Answer) -> dict[str, str]:
    worst, today = incidents["incidents"][0], history["today"]
    saved = today["unicast_equivalent_bytes"] - today["egress_bytes"]
    silent = {
        row["site"]: [at for at, cell in zip(strip["quarters"], row["cells"], strict=True) if cell["state"] == NONE]
        for row in strip["rows"]
    }
    return {
        "Q1": f"{worst['title']}, since {worst['since']}",
        "Q2": f"{saved} of {today['unicast_equivalent_bytes']} bytes",
        "Q3": f"{worst['next']} Kept until {worst['affected']['kept_until']}.",
        "Q4": "; ".join(f"{site}: quarters from {at[0]} to {at[-1]}" for site, at in silent.items() if at),
    }


def _of_feeds(overview: Answer) -> dict[str, str]:
    feed = max(overview["feeds"], key=lambda one: one["latency"]["distribution_ms"]["p99"] / one["objective_ms"])
    plan = feed["plan"]
    return {"Q5": feed["feed"], "Q6": f"{plan['transport']}: {plan['clause']}", "Q7": plan["flip"]}


def _worst(history: Answer) -> int:
    return round(max(float(point["p99"]) for point in history["points"]))


def _relayed(tree: Answer) -> str:
    state = {relay["relay"]: "connected" if relay["connected"] else "away" for relay in tree["relays"]}
    behind = [f"{site['site']} by {via} ({state[via]})" for site in tree["sites"] for via in site["via"]]
    return ", ".join(behind)


def _slowest(trace: Answer) -> str:
    (late,) = (one for one in trace["products"][0]["deliveries"] if one["site"] == LATE)
    return f"{late['timing']['slow']} at {LATE}"


NONE = "no-report"
