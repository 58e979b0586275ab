"""The twenty worked examples of the selection model."""

from bench.seeds.figures.published import WORKED, Published

EXAMPLES = (
    Published("W1", "125 MB to 50 by unicast, sender 1 Gb/s", "50 s", WORKED, 50, "s"),
    Published("W2", "the same by multicast, receivers 100 Mb/s", "10 s", WORKED, 10, "s"),
    Published("W3", "servers that make unicast as fast", "5", WORKED, 5),
    Published("W4", "CONDUIT to 104: mean egress", "578 Mb/s (peak 3,463)", WORKED, 578, "Mb/s"),
    Published("W5", "NEXRAD2 to 55: mean egress", "285 Mb/s (peak 429)", WORKED, 285, "Mb/s"),
    Published("W6", "use of a circuit of CONDUIT's peak rate (NEXRAD2 67 %)", "16.7 %", WORKED, 16.7, "%"),
    Published("W7", "CONDUIT to 104, egress 1 Gb/s, multipoint offered", "multicast", WORKED, "multicast"),
    Published("W8", "NEXRAD2, few receivers, no multipoint", "static circuit", WORKED, "static-circuit"),
    Published("W9", "1 or 2 near receivers, low loss", "unicast", WORKED, "unicast"),
    Published("W10", "NCAR: least session for a set-up of 60 s", "51.1 GB", WORKED, 51.1, "GB"),
    Published("W11", "SLAC: the same", "14.3 GB", WORKED, 14.3, "GB"),
    Published("W12", "NGRID, set-up 1 s, hold 10 s: releases", "567 in 400 minutes, 30.1 % of the time", WORKED),
    Published("W13", "rate for 4 receivers by VCMTP's loss (3: 800)", "600 Mb/s", WORKED, 600, "Mb/s"),
    Published("W14", "in flight at 1 Gb/s and 36.7 ms; buffer of 128 KiB", "4.59 MB: 2.8 %", WORKED, 4.59, "MB"),
    Published("W15", "1,448 bytes every 22 us", "526.5 Mb/s", WORKED, 526.5, "Mb/s"),
    Published("W16", "direct 380, segments 900, 5,100 and 900 Mb/s", "762 Mb/s, by the relay", WORKED, 762, "Mb/s"),
    Published("W17", "half the round trip and half the loss, Reno", "2.83 times at most", WORKED, 2.83),
    Published("W18", "peers beside multicast, one origin, fresh product", "multicast", WORKED, "multicast"),
    Published("W19", "MPUP, 24 receivers: less egress", "16.4 times", WORKED),
    Published("W20", "UCAR: bound of the saving by groups", "97.9 %", WORKED, 97.9, "%"),
)
