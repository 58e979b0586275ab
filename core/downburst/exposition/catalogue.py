"""Every metric of Downburst's processes, described once: used by the code, listed in the documentation.

Names follow https://prometheus.io/docs/practices/naming: base units (seconds, bytes), `_total` for counters, `_info`
for a gauge with its content in the labels. The bounds on the series of each are given here, too.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Prometheus' types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A name with its type, its unit and its meaning."""

    name: str
    kind: Kind
    unit: str
    """A base unit, or a noun in the plural; empty: the value is 0, 1 or a ratio."""
    help: str
    labels: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    """The number of series: the product of the numbers of these at a hub."""


def _counter(name: str, unit: str, text: str, labels: str = "", per: str = "") -> Metric:
    return Metric(name, Kind.COUNTER, unit, text, tuple(labels.split()), tuple(per.split()))


def _gauge(name: str, unit: str, text: str, labels: str = "", per: str = "") -> Metric:
    return Metric(name, Kind.GAUGE, unit, text, tuple(labels.split()), tuple(per.split()))


def _histogram(name: str, text: str, labels: str, per: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, "seconds", text, tuple(labels.split()), tuple(per.split()))


BOUNDS_S: tuple[float, ...] = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 30, 60, 300, 600),
)
"""Upper bounds of all histograms; a value is known to within 2 %, and so is the bucket that it falls into."""

BUILD_INFO = _gauge("downburst_build_info", "", "Always 1; the version of the process and its part", "part version")
INTERNAL_FAULTS = _counter(
    "downburst_internal_faults_total",
    "errors",
    "Unknown errors that handlers met",
    "handler",
    "handlers",
)

NODE_UP = _gauge("downburst_node_up", "", "1 while the hub's node runs")
NODE_RESTARTS = _counter("downburst_node_restarts_total", "restarts", "Restarts of the node since the hub started")
PROBE_UP = _gauge("downburst_probe_success", "", "1 while this probe of /healthz passes", "probe", "probes")
DISK_FREE = _gauge("downburst_disk_free_bytes", "bytes", "Free space on the disk of the hub's logs")
DISK_SIZE = _gauge("downburst_disk_size_bytes", "bytes", "Size of the disk of the hub's logs")
LOG_PRODUCTS = _gauge("downburst_log_products", "products", "Products that the log of a feed holds", "feed", "feeds")
LOG_SIZE = _gauge(
    "downburst_log_size_bytes", "bytes", "Disk used by the log of a feed, with indexes", "feed", "feeds"
)
LOG_LIMIT = _gauge(
    "downburst_log_limit_bytes", "bytes", "Disk that the log of a feed may use (retention_bytes)", "feed", "feeds"
)
LOG_OLDEST = _gauge(
    "downburst_log_oldest_product_timestamp_seconds",
    "seconds",
    "When the oldest product of a feed's log was stored; its age is time() less this",
    "feed",
    "feeds",
)

INGEST_PRODUCTS = _counter(
    "downburst_ingest_products_total", "products", "Products taken in since the hub started", "feed", "feeds"
)
INGEST_BYTES = _counter(
    "downburst_ingest_bytes_total", "bytes", "Bytes of products taken in since the hub started", "feed", "feeds"
)
EGRESS_BYTES = _counter(
    "downburst_egress_bytes_total",
    "bytes",
    "Payload sent to sites, with TLS and repair",
    "feed transport",
    "feeds transports",
)
REPAIR_BYTES = _counter(
    "downburst_repair_bytes_total", "bytes", "Payload sent again as repair", "feed transport", "feeds transports"
)
CATCH_UPS = _counter(
    "downburst_catch_ups_total",
    "streams",
    "Streams by which sites caught up together since the hub started",
    "feed",
    "feeds",
)
CATCH_UP_SAVED_BYTES = _counter(
    "downburst_catch_up_saved_bytes_total",
    "bytes",
    "Bytes that a copy for each site would have needed beyond these streams",
    "feed",
    "feeds",
)
LOST_PRODUCTS = _counter(
    "downburst_lost_products_total",
    "products",
    "Products that a site did not get, counted per site: expired from the log, or rejected by the site",
    "feed outcome",
    "feeds outcomes",
)
DEADLINE_PRODUCTS = _gauge(
    "downburst_deadline_products",
    "products",
    "Products of feeds with a deadline, by outcome at a site: stored, late-at-hub, late-at-site or lost",
    "feed site outcome",
    "feeds sites outcomes",
)
SIBLING_SAVED = _counter(
    "downburst_sibling_saved_bytes_total",
    "bytes",
    "Product bytes that siblings gave to a site, and that the hub did not have to send",
    "site feed",
    "sites feeds",
)
PLAN_SWITCHES = _counter("downburst_plan_switches_total", "plans", "Plans made after the first", "feed", "feeds")
PREDICTED_RATIO = _gauge(
    "downburst_predicted_over_measured_ratio", "", "Predicted p99 over the measured one", "feed", "feeds"
)

SESSIONS = _gauge("downburst_sessions", "sites", "Connected sites")
SITE_UP = _gauge(
    "downburst_site_up", "", "1 while the site is connected to the hub or one of its senders", "site", "sites"
)
SITE_BUILD_INFO = _gauge(
    "downburst_site_build_info", "", "Always 1; the version of a connected site's receiver", "site version", "sites"
)
TRANSPORT_INFO = _gauge(
    "downburst_transport_info",
    "",
    "Always 1; the transport that brings a feed to a connected site",
    "feed site transport",
    "feeds sites",
)
PENDING_PRODUCTS = _gauge(
    "downburst_pending_products", "products", "Products that a site lacks, connected or not", "site", "sites"
)
PENDING_BYTES = _gauge("downburst_pending_bytes", "bytes", "Bytes of the products that a site lacks", "site", "sites")
PENDING_OLDEST = _gauge(
    "downburst_pending_oldest_seconds",
    "seconds",
    "Since the oldest product that a site lacks was stored at the hub; 0: it lacks none",
    "site",
    "sites",
)
PENDING_LOST = _gauge(
    "downburst_pending_lost_products",
    "products",
    "Products that left the hub's log before the site had them, since it was last up to date",
    "site",
    "sites",
)
HOST_CLOCK_ERROR = _gauge(
    "downburst_host_clock_error_bound_seconds",
    "seconds",
    "The largest error of this machine's clock by its daemon or the kernel: root dispersion and half the root delay",
)
HOST_CLOCK_SYNCHRONISED = _gauge(
    "downburst_host_clock_synchronised", "", "1 while this machine's clock follows a reference"
)
SITE_CLOCK_SYNCHRONISED = _gauge(
    "downburst_site_clock_synchronised",
    "",
    "1 while a daemon keeps a connected site's clock in step",
    "site",
    "sites",
)
SITE_CLOCK_ERROR = _gauge(
    "downburst_site_clock_error_seconds",
    "seconds",
    "The largest error of a connected site's clock, by its kernel",
    "site",
    "sites",
)
RECEIVE_DROPPED = _counter(
    "downburst_receive_dropped_datagrams_total",
    "datagrams",
    "Datagrams of a feed's groups that a connected site's kernel dropped for want of room in the receive buffer, "
    "since its receiver started",
    "feed site",
    "feeds sites",
)
RECEIVE_BUFFER = _gauge(
    "downburst_receive_buffer_bytes",
    "bytes",
    "The receive buffer that a connected site's kernel grants for a feed's group",
    "feed site",
    "feeds sites",
)
RECEIVE_DEMOTIONS = _counter(
    "downburst_receive_priority_losses_total",
    "losses",
    "Real-time priorities that a connected site's reading threads of a feed lost; since its receiver started",
    "feed site",
    "feeds sites",
)
CLOCK_OFFSET = _gauge(
    "downburst_clock_offset_seconds", "seconds", "A connected site's clock less the hub's", "site", "sites"
)
CLOCK_BOUND = _gauge(
    "downburst_clock_error_bound_seconds", "seconds", "Bound of the error of that offset", "site", "sites"
)

DELIVERY_LATENCY = _histogram(
    "downburst_delivery_latency_seconds",
    "From storage at the hub to storage at the site; a negative value counts in the first bucket",
    "feed site transport",
    "feeds sites transports_used",
)
END_TO_END_LATENCY = _histogram(
    "downburst_end_to_end_latency_seconds",
    "From creation at the origin to storage at the site, over all sites",
    "feed transport",
    "feeds transports",
)
QUEUEING = _histogram(
    "downburst_queueing_seconds",
    "From storage at the hub to the first byte sent to a site, over all sites",
    "feed transport",
    "feeds transports",
)
ACTION = _histogram(
    "downburst_action_seconds", "From storage at the site to the file that its software sees", "site", "sites"
)

ALARMS = _gauge("downburst_alarms", "alarms", "Open alarms", "kind severity feed site", "open_alarms")
CIRCUIT_RESERVED = _gauge(
    "downburst_circuit_reserved_bytes_per_second",
    "bytes",
    "Reserved for each site of a circuit, in bytes of Ethernet frames",
    "circuit direction",
    "circuits directions",
)
CIRCUIT_MEASURED = _gauge(
    "downburst_circuit_measured_bytes_per_second",
    "bytes",
    "Found by the last probes of a circuit, in bytes of Ethernet frames",
    "circuit site direction",
    "circuits sites_of_circuit directions",
)
CIRCUIT_BYTES = _counter(
    "downburst_circuit_frame_bytes_total",
    "bytes",
    "Bytes of frames at an end of a circuit; no site: all ends of one that is shared",
    "circuit site direction",
    "circuits sites_of_circuit directions",
)
CIRCUIT_STATE = _gauge(
    "downburst_circuit_state", "", "1 for the state that a circuit is in", "circuit state", "circuits states"
)
OFFER_ORDERS = _gauge(
    "downburst_offer_today_orders",
    "orders",
    "Orders of circuits under an offer since midnight UTC",
    "offer",
    "offers",
)
OFFER_RESERVED = _gauge(
    "downburst_offer_today_reserved_seconds",
    "seconds",
    "Reserved time since midnight UTC, summed over the circuits of an offer",
    "offer",
    "offers",
)
OFFER_SETUP = _gauge(
    "downburst_offer_setup_median_seconds",
    "seconds",
    "Median set-up time of the last circuits of an offer, from the order to the end of the probes",
    "offer",
    "offers",
)

GC_DOWNLOADED = _counter(
    "wmo_wis2_gc_downloaded_total",
    "products",
    "Number of data items downloaded, by centre",
    "centre_id report_by",
    "centres",
)
GC_ERRORS = _counter(
    "wmo_wis2_gc_downloaded_errors_total",
    "products",
    "Number of download errors, by centre",
    "centre_id report_by",
    "centres",
)
GC_LAST = _gauge(
    "wmo_wis2_gc_last_download_timestamp_seconds",
    "seconds",
    "Timestamp of the last successful download, by centre",
    "centre_id report_by",
    "centres",
)
GC_INTEGRITY = _counter(
    "wmo_wis2_gc_integrity_failed_total",
    "products",
    "Number of messages for which the integrity check failed, by centre",
    "centre_id report_by",
    "centres",
)
BRIDGE_CONNECTED = _gauge(
    "downburst_bridge_connected", "", "1 while a broker of a source is connected", "bridge broker", "bridges brokers"
)
BRIDGE_LAST = _gauge(
    "downburst_bridge_last_message_timestamp_seconds",
    "seconds",
    "Timestamp of the last message of a broker of a source",
    "bridge broker",
    "bridges brokers",
)
BRIDGE_PRODUCTS = _gauge(
    "downburst_bridge_products",
    "products",
    "Announced products of the last two days by state",
    "bridge state",
    "bridges states",
)
PUBLISHER_CONNECTED = _gauge(
    "downburst_publisher_connected", "", "1 while the broker of a publisher is connected", "publisher", "publishers"
)
PUBLISHER_PRODUCTS = _gauge(
    "downburst_publisher_products",
    "products",
    "Products of the last two days by step: waiting, announced, refused or expired",
    "publisher step",
    "publishers steps",
)
PATH_PROBES = _gauge("downburst_path_probes_running", "probes", "Probes of the paths to sites that run now")
PATH_KNEE = _gauge(
    "downburst_path_knee_bytes_per_second",
    "bytes",
    "Knee of a site's path (it loses packets above), by its newest sweep in 14 days, in bytes of Ethernet frames",
    "site direction",
    "sites directions",
)

SENDER_READY = _gauge("downburst_sender_ready", "", "1 while the sender serves sites")
SENDER_DRAINING = _gauge("downburst_sender_draining", "", "1 while the sender hands over to others")
SENDER_SESSIONS = _gauge("downburst_sender_sessions", "sites", "Sites connected to the sender")
SENDER_EGRESS = _gauge(
    "downburst_sender_egress_bytes_per_second", "bytes", "Payload sent to sites over the last seconds"
)
SENDER_RESTARTS = _counter("downburst_sender_node_restarts_total", "restarts", "Restarts of the sender's node")
SENDER_BEAT = _gauge("downburst_sender_beat_age_seconds", "seconds", "Since the sender last reported to the ledger")

CATALOGUE: dict[str, tuple[Metric, ...]] = {
    "Every process with a page": (BUILD_INFO, INTERNAL_FAULTS),
    "Hub": (
        *(NODE_UP, NODE_RESTARTS, PROBE_UP, HOST_CLOCK_ERROR, HOST_CLOCK_SYNCHRONISED),
        *(DISK_FREE, DISK_SIZE, LOG_PRODUCTS, LOG_SIZE, LOG_LIMIT, LOG_OLDEST),
        *(INGEST_PRODUCTS, INGEST_BYTES, EGRESS_BYTES, REPAIR_BYTES, LOST_PRODUCTS, PLAN_SWITCHES, PREDICTED_RATIO),
        *(DEADLINE_PRODUCTS, CATCH_UPS, CATCH_UP_SAVED_BYTES, SIBLING_SAVED),
        *(SESSIONS, SITE_UP, SITE_BUILD_INFO, TRANSPORT_INFO, CLOCK_OFFSET, CLOCK_BOUND),
        *(SITE_CLOCK_SYNCHRONISED, SITE_CLOCK_ERROR),
        *(RECEIVE_DROPPED, RECEIVE_BUFFER, RECEIVE_DEMOTIONS),
        *(PENDING_PRODUCTS, PENDING_BYTES, PENDING_OLDEST, PENDING_LOST),
        *(DELIVERY_LATENCY, END_TO_END_LATENCY, QUEUEING, ACTION),
        *(ALARMS, CIRCUIT_RESERVED, CIRCUIT_MEASURED, CIRCUIT_BYTES, CIRCUIT_STATE),
        *(OFFER_ORDERS, OFFER_RESERVED, OFFER_SETUP, PATH_PROBES, PATH_KNEE),
        *(GC_DOWNLOADED, GC_ERRORS, GC_LAST, GC_INTEGRITY, BRIDGE_CONNECTED, BRIDGE_LAST, BRIDGE_PRODUCTS),
        *(PUBLISHER_CONNECTED, PUBLISHER_PRODUCTS),
    ),
    "Sender": (SENDER_READY, SENDER_DRAINING, SENDER_SESSIONS, SENDER_EGRESS, SENDER_RESTARTS, SENDER_BEAT),
}
