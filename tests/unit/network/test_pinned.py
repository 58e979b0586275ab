"""The address of a host name is checked once, and the connection goes to exactly the checked address."""

import httpx
import pytest

from downburst.network.addresses import is_public
from downburst.network.pinned import NotPublic, PublicTransport
from downburst.network.receiver_addresses import web_address

PUBLIC = ("8.8.8.8", "129.93.1.1", "2606:4700::1111", "2a00:1450:4001::200e")
NOT_PUBLIC = {
    "loopback": "127.0.0.1 127.255.0.1 ::1",
    "private": "10.0.0.1 172.16.0.1 192.168.0.1 fc00::1 fd12::1 fec0::1 100.64.0.1",
    "link": "169.254.169.254 fe80::1 fe80::1%1",
    "multicast": "224.0.0.1 232.1.1.1 239.255.0.1 ff02::1 ff05::1 ff0e::1 ff3e::8000:1",
    "none": "0.0.0.0 :: 240.0.0.1 255.255.255.255 192.0.0.8 192.88.99.1 198.18.0.1 192.0.2.1 2001:db8::1 nothing",
    "NAT64": "64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::a00:1 64:ff9b:1:ffff::1",
    "6to4": "2002:7f00:1:: 2002:808:808::1",
    "Teredo": "2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "mapped": "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:7f00:1 ::7f00:1 ::8.8.8.8",
}


@pytest.mark.parametrize("kind", NOT_PUBLIC)
def test_finding_11_addresses_that_lead_inside_are_not_public(kind: str) -> None:
    assert [address for address in NOT_PUBLIC[kind].split() if is_public(address)] == []


def test_addresses_of_the_public_network_are_public() -> None:
    assert all(map(is_public, PUBLIC))


@pytest.mark.parametrize("found", [["8.8.8.8", "10.0.0.1"], ["ff0e::1"], ["64:ff9b::7f00:1"]])
async def test_finding_11_one_address_inside_is_enough_to_refuse_a_name(found: list[str]) -> None:
    async with httpx.AsyncClient(transport=PublicTransport(lambda _host, _port: found)) as client:
        with pytest.raises(NotPublic):
            await client.post("http://both.example/")


def test_a_host_that_is_no_ascii_is_the_one_that_is_connected_to() -> None:
    assert web_address("https://münchen.example/x").host == "xn--mnchen-3ya.example"
    assert (web_address("http://[::1]:81/").host, web_address("http://[::1]:81/").port) == ("::1", 81)
