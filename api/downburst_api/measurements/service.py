"""Takes results of test points, and finds them."""

import json
from functools import partial

from fastapi import Request

from downburst.domain.access import hashed, new_secret
from downburst.domain.measurements import POINT_PREFIX, Measurement, TestPoint
from downburst.foundation.errors import BadInput, NotFound
from downburst.ledger import Transaction
from downburst.network.addresses import network_of
from downburst.recordings.perfsonar import read_result
from downburst_api.border.authorization import caller_of
from downburst_api.border.bodies import Body
from downburst_api.border.values import check_body
from downburst_api.runtime import Runtime
from downburst_contract.measuring.measurements import AddedTestPoint, Archived
from downburst_contract.measuring.measurements import TestPoint as ShownTestPoint


async def add(hub: Runtime, wanted: TestPoint) -> AddedTestPoint:
    """Stores a test point and the hash of a new token."""
    token = new_secret(POINT_PREFIX)
    kept = await hub.ledger.write(lambda tx: tx.measured.points.add(wanted, hashed(token)))
    shown = ShownTestPoint.of(kept).model_dump()
    return AddedTestPoint(**shown, token=token, archive_path=f"/v1/measurements/archive/{token}")


async def of_site(hub: Runtime, site: str, *, before: int | None, limit: int) -> list[Measurement]:
    """Measurements with an end at a site; refuses an unknown site."""

    def read(tx: Transaction) -> list[Measurement]:
        return tx.measured.measurements.newest(site=tx.sites.one(site).name, before=before, limit=limit)

    return await hub.ledger.read(read)


async def archive(hub: Runtime, token: str, request: Request) -> Archived:
    """Stores a result of the test point with this token; one without a figure is stored with the reason."""
    point = await _point(hub, token, network_of(caller_of(request).peer))
    body = await Body(request.scope, request.receive).read(most_bytes=MOST_BYTES, within_s=hub.settings.limits.body_s)
    check_body(body)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise BadInput("the body is no JSON; the HTTP archiver of pScheduler sends JSON") from None
    measured = read_result(point.name, document, hub.clock.now())
    await hub.ledger.write(partial(_store, measured=measured))
    return Archived(taken=measured.figure is not None, reason=measured.refused)


async def _point(hub: Runtime, token: str, peer: str) -> TestPoint:
    """The test point with a token; an unknown token counts as wrong, however many connections try."""
    found = None
    if token.startswith(POINT_PREFIX):
        found = await hub.ledger.read(lambda tx: tx.measured.points.with_token(hashed(token)))
    if found is None:
        hub.gate.wrong.take(peer)
        raise NotFound("no test point has this token; add one: downburst measurements points add")
    return found


def _store(tx: Transaction, measured: Measurement) -> None:
    # A test point that was removed while its result came has no measurements any more.
    if any(point.name == measured.point for point in tx.measured.points.all()):
        tx.measured.measurements.add(measured)


MOST_BYTES = 1_048_576
"""A throughput test of an hour with a line for each second has half of it."""
