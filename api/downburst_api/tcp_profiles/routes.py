"""Routes of TCP profiles."""

from fastapi import APIRouter

from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub
from downburst_api.tcp_profiles import service
from downburst_contract.tcp_profiles import TcpProfile, TcpProfileWanted

router = APIRouter(prefix="/v1", tags=["TCP profiles"])


@router.get("/tcp-profiles")
async def list_tcp_profiles(hub: Hub, page: Paged) -> list[TcpProfile]:
    """All TCP profiles, with their learnt values and the present or last trial."""
    kept = await hub.ledger.read(lambda tx: tx.fleet.tcp_profiles.all())
    return page.of(map(TcpProfile.of, kept), "profile")


@router.get("/tcp-profiles/{profile}", responses={404: {}})
async def show_tcp_profile(hub: Hub, profile: str) -> TcpProfile:
    """One TCP profile."""
    return TcpProfile.of(await hub.ledger.read(lambda tx: tx.fleet.tcp_profiles.one(profile)))


@router.put("/tcp-profiles/{profile}", responses={409: {}})
async def put_tcp_profile(hub: Hub, profile: str, wanted: TcpProfileWanted) -> TcpProfile:
    """Adds a TCP profile, or gives it exactly these values; they apply to present and later connections."""
    return TcpProfile.of(await service.put(hub, wanted.to_model(profile)))


@router.delete("/tcp-profiles/{profile}", status_code=204, responses={404: {}})
async def remove_tcp_profile(hub: Hub, profile: str) -> None:
    """Removes a TCP profile; its connections get the values of a shorter prefix, or the kernel's."""
    await service.remove(hub, profile)
