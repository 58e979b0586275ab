"""Figures of circuits: OSCARS, ION and DYNES, shaping with tc, OpenFlow, hybrid traffic engineering."""

from bench.seeds.figures.published import DYNES, HNTES, UVA, Published

CIRCUITS = (
    Published("C1", "a static circuit beside other traffic", "keeps the rate that it reserves", UVA),
    Published("C2", "set-up of a circuit", "about 1 minute", DYNES, unit="s"),
    Published(
        "C3",
        "circuit of 2,000 Mb/s over four domains, VLAN 3021 translated to 3123",
        "made by OSCARS",
        DYNES,
        missing="an OSCARS or OESS service, switches of four domains, and 802.1Q in the kernel",
    ),
    Published(
        "C4",
        "multipoint VLANs for VCMTP",
        "NDDI, OESS, AL2S",
        UVA,
        missing="an OpenFlow network with OESS",
    ),
    Published("C5", "2.5 Gb/s offered to a circuit of 2 Gb/s: beyond its profile", "0.5 Gb/s: a fifth", DYNES),
    Published("C6", "round trip over a circuit of 36.3 ms, by ping", "36.3 ms, mean deviation 0.2", DYNES, unit="ms"),
    Published("C7", "shaped to 0.9 over unshaped, small buffer", "825.9 over 23.07 Mb/s: 36 times", DYNES),
    Published("C8", "reached share of the shaped rate", "825.9 of 900 Mb/s: 0.918", DYNES),
    Published("C9", "segments sent again, unshaped and shaped", "171 and 1", DYNES),
    Published("C10", "shaped to the whole rate over unshaped", "251.2 over 23.07 Mb/s: 11 times", DYNES),
    Published(
        "C11",
        "36.7 ms at 1 Gb/s: the rates themselves",
        "23.07, 251.2 and 825.9 Mb/s",
        DYNES,
        missing="a wide-area circuit of 1 Gb/s and 36.7 ms",
    ),
    Published("C12", "heavy flows that rules of the day before cover", "over 94 % of their bytes in 2 months", HNTES),
    Published(
        "C13",
        "the same over 7 months",
        "over 90 %",
        HNTES,
        missing="seven months of flow records of ESnet",
    ),
    Published(
        "C14",
        "heavy flows that end within 2 minutes",
        "80 %",
        HNTES,
        missing="flow records of ESnet",
    ),
    Published("C15", "rate of the shaper, of the circuit's", "900 of 1,000 Mb/s", DYNES, 0.9),
    Published("C16", "a heavy flow: bytes in a minute", "1 GB", HNTES, 1.0, "GB"),
)
