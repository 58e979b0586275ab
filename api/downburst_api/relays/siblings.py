"""Routes of repair between sites: the exchange of each site, and the account of the bytes saved."""

from fastapi import APIRouter

from downburst.domain.relays.siblings import Saved, SiblingExchange
from downburst.ledger import Transaction
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Asking, Hub
from downburst_api.sites.service import announce
from downburst_contract.paths import siblings as shapes

router = APIRouter(prefix="/v1", tags=["siblings"])


@router.get("/siblings")
async def list_siblings(hub: Hub, page: Paged) -> list[shapes.SiblingSite]:
    """Every site that exchanges products with siblings, or took any, with the bytes that the hub did not send."""
    exchanges, savings = await hub.ledger.read(lambda tx: (tx.fleet.siblings.all(), tx.fleet.siblings.savings()))
    known = {one.site: one for one in exchanges}
    names = sorted({*known, *(one.site for one in savings)})
    of_site = ([one for one in savings if one.site == name] for name in names)
    shown = [_shown(name, known.get(name), saved) for name, saved in zip(names, of_site, strict=True)]
    return page.of(shown, "site")


@router.get("/sites/{site}/siblings", responses={404: {}})
async def show_siblings(hub: Hub, site: str) -> shapes.SiblingSite:
    """The exchange of one site, and the bytes that the hub did not send to it."""
    return await hub.ledger.read(lambda tx: _read(tx, site))


@router.put("/sites/{site}/siblings", responses={404: {}})
async def set_siblings(
    hub: Hub, caller: Asking, site: str, wanted: shapes.SiblingExchangeWanted
) -> shapes.SiblingSite:
    """Switches the exchange of a site on, with exactly these values; siblings learn its address, and it theirs."""

    def write(tx: Transaction) -> shapes.SiblingSite:
        tx.fleet.siblings.put(wanted.to_model(tx.sites.one(site).name, set_by=caller.name))
        return _read(tx, site)

    kept = await hub.ledger.write(write)
    await announce(hub)
    return kept


@router.delete("/sites/{site}/siblings", status_code=204, responses={404: {}})
async def end_siblings(hub: Hub, site: str) -> None:
    """Switches the exchange of a site off: running transfers end within a second."""
    await hub.ledger.write(lambda tx: tx.fleet.siblings.remove(tx.sites.one(site).name))
    await announce(hub)


def _read(tx: Transaction, site: str) -> shapes.SiblingSite:
    name = tx.sites.one(site).name
    return _shown(name, tx.fleet.siblings.find(name), tx.fleet.siblings.savings(name))


def _shown(site: str, exchange: SiblingExchange | None, savings: list[Saved]) -> shapes.SiblingSite:
    return shapes.SiblingSite(
        site=site,
        exchange=None if exchange is None else shapes.SiblingExchange.model_validate(exchange),
        saved=[shapes.SavedOfFeed.model_validate(one) for one in savings],
        saved_bytes=sum(one.bytes for one in savings),
    )
