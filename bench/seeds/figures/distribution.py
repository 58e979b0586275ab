"""Figures of distribution: IDD and LDM, VCMTP, FMTP, MPUP, DRFSM, peers, receivers on busy hosts."""

from bench.seeds.figures.published import DRFSM, FMTP, MPUP, UVA, Published

DISTRIBUTION = (
    Published("D1", "CONDUIT: busiest minute over the mean of the day", "250 MB in a minute, 60 GB a day", UVA, 6.0),
    Published("D2", "NEXRAD2: the same", "58 MB in a minute, 56 GB a day", UVA, 1.49),
    Published("D3", "egress of CONDUIT to 104 receivers, peak", "3.5 Gb/s", UVA, 3_463, "Mb/s"),
    Published("D4", "egress of NEXRAD2 to 55 receivers, peak", "429 Mb/s", UVA, 429, "Mb/s"),
    Published(
        "D5",
        "servers of the IDD at UCAR, and their access line",
        "9 servers, 5 Gb/s",
        UVA,
        missing="a cluster of nine servers behind an access line of 5 Gb/s",
    ),
    Published("D6", "sites and products of the IDD", "over 570 sites, 420,000 products an hour", DRFSM),
    Published("D7", "bytes out over bytes in at UCAR", "2.34 TB/h of 50 GB/h: 46.8 times", DRFSM, 46.8),
    Published("D8", "unicast: the last of n receivers", "latency grows with n: n times size over egress", UVA),
    Published(
        "D9", "unicast: median receiver over the last one", "round robin: all end at nearly the same time", UVA
    ),
    Published("D10", "VCMTP, 7 receivers, no loss: goodput of 600 Mb/s", "574.6 to 588.3 Mb/s", UVA),
    Published("D11", "VCMTP: receivers without loss beside lossy ones", "575.7 to 588.3 Mb/s: unchanged", UVA),
    Published("D12", "VCMTP: the lossy receivers", "561.4 to 580.3 Mb/s: 1 to 2.5 % slower", UVA),
    Published("D13", "VCMTP: repeated share at 600 Mb/s", "0 to 0.26 %", UVA, unit="%"),
    Published("D14", "VCMTP: repeated share at 800 Mb/s", "4.46 to 11.04 %", UVA, unit="%"),
    Published(
        "D15", "FMTP: receivers with all data, by the time-out factor", "81.4 % at 10, 97.5 % at 50", FMTP, unit="%"
    ),
    Published("D16", "FMTP: throughput that this costs", "85 to 82.8 Mb/s: 0.974", FMTP),
    Published("D17", "MPUP: bytes to 24 receivers, unicast over multicast", "350 over 21.4: 16.4 times", MPUP),
    Published("D18", "MPUP: latency, unicast over multicast", "3 times", MPUP),
    Published("D19", "DRFSM: latency to 6 subscribers on 100 Mb/s", "22 times faster than unicast", DRFSM),
    Published("D20", "DRFSM: bandwidth saved", "90 %", DRFSM, unit="%"),
    Published(
        "D21",
        "receivers with SCHED_RR beside two busy loops for each core",
        "SCHED_RR cuts the loss by full buffers",
        UVA,
        unit="%",
    ),
    Published("D22", "peer to peer: transfers of a fresh block", "more than one for most blocks", UVA),
)
