"""The access rule of every route. The api does not start with a route without a rule, or a rule without a route."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from downburst.domain.access import Scope


class Own(Enum):
    """How a site's administrator, limited to that site, may call a route."""

    NEVER = auto()
    PATH = auto()
    """If the path has the site's name."""
    QUERY = auto()
    """With the parameter `site`, which is filled in if it is absent."""
    FILTERED = auto()
    """The route itself limits its answer to the site."""


class Object(Enum):
    """Objects of one tenant that a request may name: a site's administrator reaches the site's own."""

    SITE = auto()
    FEED = auto()
    """A feed in the site's allow list; others are answered as if they did not exist."""
    LIMIT = auto()
    """Products of a feed: those within the site's limits."""
    USER = auto()
    ITEM = auto()
    """An object of a site, by number or name: its subscription, window, receiver."""


class Holds(Enum):
    """The tenant's budget that a request takes while it is answered."""

    BODY = auto()
    """A body that is read before the route runs."""
    STREAM = auto()
    """An event stream, while the client listens."""
    UPLOAD = auto()
    """A body that the route itself streams to a file, with limits of its own."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rights that a route requires; without a scope, none."""

    scope: Scope | None
    own: Own = Own.NEVER
    known: bool = False
    """True if the caller must be signed in."""
    holds: Holds = Holds.BODY
    objects: tuple[Object, ...] | None = None
    """Given in every rule that admits strangers or sites' administrators; a test requires it."""
    token_in_query: bool = False
    """True if a token that may only read is accepted as the parameter `token`."""
    is_file_for_all: bool = False
    """True for files that are published for machines without a login: their requests have a limit of their own."""

    @property
    def is_complete(self) -> bool:
        """True if the rule names the objects within reach of all the callers it admits."""
        return self.objects is not None or (self.scope is not None and self.own is Own.NEVER)


EVERYBODY = Rule(None, objects=())
FILE_FOR_ALL = Rule(None, objects=(), is_file_for_all=True)
SIGNED_IN = Rule(None, known=True, objects=())
LATENCY = Rule(Scope.LATENCY, Own.QUERY, objects=(Object.SITE, Object.FEED))
LISTED = Rule(Scope.READ, Own.QUERY, objects=(Object.SITE, Object.FEED))
OWN_STATE = Rule(Scope.READ, Own.QUERY, objects=(Object.SITE,))
PRODUCTS = Rule(Scope.READ, Own.QUERY, objects=(Object.SITE, Object.FEED, Object.LIMIT))
PUBLISHED = Rule(Scope.LATENCY)
READ = Rule(Scope.READ)
DETAILS = Rule(Scope.DETAILS)
OPERATE = Rule(Scope.OPERATE)
ADMIN = Rule(Scope.ADMIN)
SITE_READS = Rule(Scope.DETAILS, Own.PATH, objects=(Object.SITE,))
SITE_CHANGES = Rule(Scope.OPERATE, Own.PATH, objects=(Object.SITE,))
ARCHIVE = Rule(None, objects=(), holds=Holds.UPLOAD)
"""The token in the path admits; the body is read once the token is known."""
SITE_ITEM = Rule(Scope.OPERATE, Own.PATH, objects=(Object.SITE, Object.ITEM))
PROBES = Rule(Scope.DETAILS, Own.QUERY, objects=(Object.SITE,))
PROBE = Rule(Scope.DETAILS, Own.QUERY, objects=(Object.SITE, Object.ITEM))

RULES: Mapping[tuple[str, str], Rule] = {
    ("GET", "/"): EVERYBODY,
    ("GET", "/healthz"): EVERYBODY,
    ("GET", "/livez"): EVERYBODY,
    ("GET", "/readyz"): EVERYBODY,
    ("GET", "/metrics"): Rule(Scope.METRICS),
    ("GET", "/docs"): EVERYBODY,
    ("GET", "/openapi.json"): EVERYBODY,
    ("GET", "/v1/session"): EVERYBODY,
    ("POST", "/v1/session"): EVERYBODY,
    ("DELETE", "/v1/session"): EVERYBODY,
    ("GET", "/v1/session/ways"): EVERYBODY,
    ("GET", "/v1/session/oidc"): EVERYBODY,
    ("GET", "/v1/session/oidc/callback"): EVERYBODY,
    ("POST", "/v1/session/link"): EVERYBODY,
    ("POST", "/v1/session/links"): SIGNED_IN,
    ("PUT", "/v1/session/password"): SIGNED_IN,
    ("GET", "/v1/users"): ADMIN,
    ("POST", "/v1/users"): ADMIN,
    ("GET", "/v1/users/{user}"): ADMIN,
    ("PATCH", "/v1/users/{user}"): ADMIN,
    ("DELETE", "/v1/users/{user}"): ADMIN,
    ("POST", "/v1/users/{user}/invitations"): ADMIN,
    ("GET", "/v1/access-tokens"): ADMIN,
    ("POST", "/v1/access-tokens"): ADMIN,
    ("DELETE", "/v1/access-tokens/{number}"): ADMIN,
    ("GET", "/v1/audit"): ADMIN,
    ("POST", "/v1/access-requests"): EVERYBODY,
    ("POST", "/v1/access-requests/state"): EVERYBODY,
    ("GET", "/v1/access-requests"): OPERATE,
    ("POST", "/v1/access-requests/{number}/approval"): OPERATE,
    ("POST", "/v1/access-requests/{number}/refusal"): OPERATE,
    ("GET", "/v1/alarms"): LISTED,
    ("GET", "/v1/silences"): READ,
    ("POST", "/v1/silences"): OPERATE,
    ("DELETE", "/v1/silences/{number}"): OPERATE,
    ("GET", "/v1/objectives"): LISTED,
    ("PUT", "/v1/feeds/{feed}/objectives/{site}"): OPERATE,
    ("DELETE", "/v1/feeds/{feed}/objectives/{site}"): OPERATE,
    ("GET", "/v1/alarm-receivers"): OPERATE,
    ("GET", "/v1/site-alarm-receivers"): OPERATE,
    ("POST", "/v1/alarm-receivers"): OPERATE,
    ("DELETE", "/v1/alarm-receivers/{receiver}"): OPERATE,
    ("POST", "/v1/alarm-receivers/{receiver}/test"): OPERATE,
    ("GET", "/v1/overview"): READ,
    ("GET", "/v1/events"): Rule(Scope.READ, holds=Holds.STREAM),
    ("GET", "/v1/now/incidents"): OWN_STATE,
    ("GET", "/v1/now/strip"): OWN_STATE,
    ("GET", "/v1/now/history"): READ,
    ("GET", "/v1/status"): DETAILS,
    ("GET", "/v1/latency"): LATENCY,
    ("GET", "/v1/latency/history"): LATENCY,
    ("GET", "/v1/latency/histogram"): LATENCY,
    ("GET", "/v1/latency/heat"): LATENCY,
    ("GET", "/v1/totals"): PUBLISHED,
    ("GET", "/v1/volume"): PUBLISHED,
    ("GET", "/v1/volume/history"): LATENCY,
    ("GET", "/v1/tree"): PUBLISHED,
    ("GET", "/v1/plans"): READ,
    ("GET", "/v1/feeds"): Rule(Scope.READ, Own.FILTERED, objects=(Object.FEED,)),
    ("POST", "/v1/feeds"): OPERATE,
    ("GET", "/v1/feeds/{feed}"): READ,
    ("PUT", "/v1/feeds/{feed}"): OPERATE,
    ("PATCH", "/v1/feeds/{feed}"): OPERATE,
    ("DELETE", "/v1/feeds/{feed}"): OPERATE,
    ("GET", "/v1/feeds/{feed}/plans"): READ,
    ("POST", "/v1/feeds/{feed}/what-if"): READ,
    ("GET", "/v1/feeds/{feed}/outcomes"): READ,
    ("GET", "/v1/feeds/{feed}/catch-ups"): READ,
    ("GET", "/v1/feeds/{feed}/seconds"): READ,
    ("PUT", "/v1/feeds/{feed}/pin"): OPERATE,
    ("DELETE", "/v1/feeds/{feed}/pin"): OPERATE,
    ("PUT", "/v1/feeds/{feed}/products/{product_id:anytext}"): Rule(Scope.INGEST, holds=Holds.UPLOAD),
    ("GET", "/v1/feeds/{feed}/distribution"): PRODUCTS,
    ("POST", "/v1/feeds/{feed}/pattern-test"): PRODUCTS,
    ("GET", "/v1/products"): PRODUCTS,
    ("GET", "/v1/products/trace"): PRODUCTS,
    ("GET", "/v1/deliveries"): LISTED,
    ("GET", "/v1/sites"): DETAILS,
    ("POST", "/v1/sites"): OPERATE,
    ("GET", "/v1/sites/{site}"): SITE_READS,
    ("PATCH", "/v1/sites/{site}"): OPERATE,
    ("DELETE", "/v1/sites/{site}"): OPERATE,
    ("GET", "/v1/sites/{site}/path"): SITE_READS,
    ("GET", "/v1/sites/{site}/tracer"): SITE_READS,
    ("PUT", "/v1/sites/{site}/endpoint"): SITE_CHANGES,
    ("GET", "/v1/sites/{site}/silences"): SITE_READS,
    ("POST", "/v1/sites/{site}/silences"): SITE_CHANGES,
    ("DELETE", "/v1/sites/{site}/silences/{number}"): SITE_ITEM,
    ("GET", "/v1/sites/{site}/alarm-receivers"): SITE_CHANGES,
    ("POST", "/v1/sites/{site}/alarm-receivers"): SITE_CHANGES,
    ("DELETE", "/v1/sites/{site}/alarm-receivers/{receiver}"): SITE_ITEM,
    ("POST", "/v1/sites/{site}/alarm-receivers/{receiver}/test"): SITE_ITEM,
    ("POST", "/v1/sites/{site}/tokens"): SITE_CHANGES,
    ("DELETE", "/v1/sites/{site}/tokens"): SITE_CHANGES,
    ("DELETE", "/v1/sites/{site}/credentials"): SITE_CHANGES,
    ("POST", "/v1/sites/{site}/credentials/replacement"): SITE_CHANGES,
    ("GET", "/v1/subscriptions"): READ,
    ("DELETE", "/v1/subscriptions/{subscription}"): OPERATE,
    ("GET", "/v1/sites/{site}/subscriptions"): SITE_READS,
    ("POST", "/v1/sites/{site}/subscriptions"): Rule(Scope.OPERATE, Own.PATH, objects=(Object.SITE, Object.FEED)),
    ("DELETE", "/v1/sites/{site}/subscriptions/{subscription}"): SITE_ITEM,
    ("POST", "/v1/resends"): OPERATE,
    ("GET", "/v1/resends"): LISTED,
    ("GET", "/v1/resends/{resend}"): READ,
    ("DELETE", "/v1/resends/{resend}"): OPERATE,
    ("GET", "/v1/upstreams"): DETAILS,
    ("POST", "/v1/upstreams"): OPERATE,
    ("DELETE", "/v1/upstreams/{upstream}"): OPERATE,
    ("GET", "/wis2/{publisher}/{epoch}/{name}"): FILE_FOR_ALL,
    ("GET", "/wis2/{publisher}/record.json"): FILE_FOR_ALL,
    ("GET", "/v1/publishers"): DETAILS,
    ("POST", "/v1/publishers"): OPERATE,
    ("GET", "/v1/publishers/{publisher}"): DETAILS,
    ("PATCH", "/v1/publishers/{publisher}"): OPERATE,
    ("DELETE", "/v1/publishers/{publisher}"): OPERATE,
    ("GET", "/v1/publishers/{publisher}/products"): DETAILS,
    ("POST", "/v1/publishers/{publisher}/preview"): OPERATE,
    ("POST", "/v1/publishers/{publisher}/withdraw"): OPERATE,
    ("GET", "/v1/bridges"): DETAILS,
    ("POST", "/v1/bridges"): OPERATE,
    ("GET", "/v1/bridges/{bridge}"): DETAILS,
    ("PATCH", "/v1/bridges/{bridge}"): OPERATE,
    ("DELETE", "/v1/bridges/{bridge}"): OPERATE,
    ("GET", "/v1/bridges/{bridge}/failed"): DETAILS,
    ("POST", "/v1/bridges/{bridge}/failed/retry"): OPERATE,
    ("GET", "/v1/bridges/{bridge}/centres"): DETAILS,
    ("GET", "/v1/bridges/{bridge}/passed-over"): DETAILS,
    ("GET", "/v1/bridges/{bridge}/holes"): DETAILS,
    ("GET", "/v1/ldm/sources"): DETAILS,
    ("POST", "/v1/ldm/sources"): OPERATE,
    ("PUT", "/v1/ldm/sources/{source}"): OPERATE,
    ("DELETE", "/v1/ldm/sources/{source}"): OPERATE,
    ("GET", "/v1/ldm/reports"): DETAILS,
    ("GET", "/v1/ldm/accepts"): DETAILS,
    ("POST", "/v1/ldm/accepts"): OPERATE,
    ("DELETE", "/v1/ldm/accepts/{number}"): OPERATE,
    ("GET", "/v1/ldm/peers"): DETAILS,
    ("GET", "/v1/test-points"): DETAILS,
    ("POST", "/v1/test-points"): OPERATE,
    ("DELETE", "/v1/test-points/{point}"): OPERATE,
    ("GET", "/v1/measurements"): DETAILS,
    ("GET", "/v1/sites/{site}/measurements"): SITE_READS,
    ("POST", "/v1/measurements/archive/{token}"): ARCHIVE,
    ("PUT", "/v1/measurements/archive/{token}"): ARCHIVE,
    ("GET", "/v1/tcp-profiles"): DETAILS,
    ("GET", "/v1/tcp-profiles/{profile}"): DETAILS,
    ("PUT", "/v1/tcp-profiles/{profile}"): OPERATE,
    ("DELETE", "/v1/tcp-profiles/{profile}"): OPERATE,
    ("POST", "/v1/probes"): OPERATE,
    ("GET", "/v1/probes"): PROBES,
    ("GET", "/v1/probes/{probe}"): PROBE,
    ("GET", "/v1/probes/{probe}/seconds"): PROBE,
    ("DELETE", "/v1/probes/{probe}"): OPERATE,
    ("POST", "/v1/probe-schedules"): OPERATE,
    ("GET", "/v1/probe-schedules"): PROBES,
    ("DELETE", "/v1/probe-schedules/{number}"): OPERATE,
    ("GET", "/v1/sites/{site}/probe-ceiling"): SITE_READS,
    ("PUT", "/v1/sites/{site}/probe-ceiling"): SITE_CHANGES,
    ("GET", "/v1/siblings"): DETAILS,
    ("GET", "/v1/sites/{site}/siblings"): SITE_READS,
    ("PUT", "/v1/sites/{site}/siblings"): SITE_CHANGES,
    ("DELETE", "/v1/sites/{site}/siblings"): SITE_CHANGES,
    ("GET", "/v1/relays"): DETAILS,
    ("GET", "/v1/relays/{relay}"): DETAILS,
    ("PUT", "/v1/relays/{relay}"): OPERATE,
    ("DELETE", "/v1/relays/{relay}"): OPERATE,
    ("GET", "/v1/relays/{relay}/log"): DETAILS,
    ("GET", "/v1/topology"): DETAILS,
    ("PUT", "/v1/topology"): OPERATE,
    ("POST", "/v1/topology/window"): DETAILS,
    ("POST", "/v1/topology/rate"): DETAILS,
    ("GET", "/v1/calendar"): DETAILS,
    ("GET", "/v1/calendar/circuits/{circuit}"): DETAILS,
    ("GET", "/v1/ports"): DETAILS,
    ("POST", "/v1/ports"): OPERATE,
    ("GET", "/v1/ports/{port}"): DETAILS,
    ("PATCH", "/v1/ports/{port}"): OPERATE,
    ("DELETE", "/v1/ports/{port}"): OPERATE,
    ("GET", "/v1/circuits"): DETAILS,
    ("GET", "/v1/circuits.ics"): Rule(Scope.DETAILS, token_in_query=True),
    ("POST", "/v1/circuits"): OPERATE,
    ("GET", "/v1/circuits/{circuit}"): DETAILS,
    ("PATCH", "/v1/circuits/{circuit}"): OPERATE,
    ("DELETE", "/v1/circuits/{circuit}"): OPERATE,
    ("POST", "/v1/circuits/{circuit}/clone"): OPERATE,
    ("POST", "/v1/circuits/{circuit}/commit"): OPERATE,
    ("POST", "/v1/circuits/{circuit}/create-path"): OPERATE,
    ("POST", "/v1/circuits/{circuit}/tear-down-path"): OPERATE,
    ("POST", "/v1/circuits/{circuit}/override"): ADMIN,
    ("POST", "/v1/circuits/{circuit}/leaves"): OPERATE,
    ("DELETE", "/v1/circuits/{circuit}/leaves/{site}"): OPERATE,
    ("POST", "/v1/circuits/{circuit}/measure"): OPERATE,
    ("GET", "/v1/test-bookings"): DETAILS,
    ("POST", "/v1/test-bookings"): OPERATE,
    ("DELETE", "/v1/test-bookings/{number}"): OPERATE,
    ("GET", "/v1/circuit-offers"): DETAILS,
    ("GET", "/v1/circuit-offers/{offer}"): DETAILS,
    ("PUT", "/v1/circuit-offers/{offer}"): OPERATE,
    ("DELETE", "/v1/circuit-offers/{offer}"): OPERATE,
    ("GET", "/v1/circuit-providers"): DETAILS,
    ("GET", "/v1/circuit-providers/{provider}"): DETAILS,
    ("PUT", "/v1/circuit-providers/{provider}"): OPERATE,
    ("DELETE", "/v1/circuit-providers/{provider}"): OPERATE,
    ("GET", "/v1/circuit-orders"): DETAILS,
    ("GET", "/v1/circuit-orders/{number}"): DETAILS,
}
