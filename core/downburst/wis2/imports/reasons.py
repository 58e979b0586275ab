"""Settings of wis2box, wis2downloader and pywis-pubsub: converted, covered by something else, or without use."""

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What becomes of a setting."""

    CONVERTED = "converted"
    """It is in a bridge, publisher or feed."""
    CARRIED = "carried"
    """Something else in the product covers it."""
    WITHOUT = "without"


@dataclass(frozen=True, slots=True)
class Ruling:
    """The fate of a setting with its reason or its place in the product."""

    fate: Fate
    text: str = ""


def ruling(name: str, rules: dict[str, Ruling]) -> Ruling | None:
    """The rule of the longest name that the setting's begins with."""
    found = max((begin for begin in rules if _begins(name, begin)), key=len, default=None)
    return None if found is None else rules[found]


def _begins(name: str, begin: str) -> bool:
    return name == begin or (begin[-1] in "_.-" and name.startswith(begin)) or name.startswith(f"{begin}.")


def _carried(text: str) -> Ruling:
    return Ruling(Fate.CARRIED, text)


def _without(text: str) -> Ruling:
    return Ruling(Fate.WITHOUT, text)


UNKNOWN = _without("no setting of a hub corresponds to it")
CONVERTED = Ruling(Fate.CONVERTED)
_WORKERS = _carried("the node downloads: five connections to a host, sixteen downloads of a centre")
_FREE_SPACE = _carried("retention_bytes bounds a feed's log: downburst feeds set FEED --retention-bytes")
_FILES = _carried("a site writes files, by its rules: downburst-node receive --actions")
_AGE = _carried("a site removes old files by their age: downburst-node receive --scour; the feed keeps 24 h")
_LOG = _without("a hub logs to its standard error, which systemd keeps; the journal has its own limits")
_LISTEN = _without("a hub has its own address: the setting http")
_SESSION = _carried("a source keeps a session of its own at each broker")
_CHECKED = _carried("topics are checked when a source is added: downburst bridges add")
_STORE = _without("products are kept in the logs of feeds, not in an object store; put files in by the setting watch")
_OBSERVATIONS = _without("there is no API of observations, for data are not decoded")
_MAP = _without("the page has no map of stations")
_REDIS = _without("there is no Redis: the queue of downloads is in the hub's ledger")
_CONVERTS = _without("data are not converted; have the converter write files, and watch their directory")
_PAGE = _without("the page of a hub is part of it, with its own users: downburst users add")
_OTHER_FILE = _carried("give the file that it names to import wis2 too")

ENVIRONMENT = {
    "WIS2BOX_URL": CONVERTED,
    "WIS2BOX_BROKER_PUBLIC": CONVERTED,
    "WIS2BOX_BROKER_HOST": _carried("the broker of the publishers, as WIS2BOX_BROKER_PUBLIC names it"),
    "WIS2BOX_BROKER_PORT": _carried("the broker of the publishers, as WIS2BOX_BROKER_PUBLIC names it"),
    "WIS2BOX_BROKER_USERNAME": _carried("the user at the publishers' broker: --user"),
    "WIS2BOX_BROKER_PASSWORD": _carried("the password at the publishers' broker: --password-file"),
    "WIS2BOX_BROKER_QUEUE_MAX": _without("this is a setting of the broker itself: max_queued_messages of mosquitto"),
    "WIS2BOX_STORAGE_DATA_RETENTION_DAYS": _carried(
        "each feed keeps 24 h, the duty of a WIS2 node; more: downburst feeds set FEED --retention-hours"
    ),
    "WIS2BOX_DATA_RETENTION_DAYS": _carried(
        "each feed keeps 24 h, the duty of a WIS2 node; more: downburst feeds set FEED --retention-hours"
    ),
    "WIS2BOX_STORAGE_PUBLIC": _carried("the hub serves announced products itself, under /wis2/ of --base-url"),
    "WIS2BOX_STORAGE_INCOMING": _carried("products come in by files (setting watch), HTTP PUT or LDM"),
    "WIS2BOX_STORAGE_API_RETENTION_DAYS": _OBSERVATIONS,
    "WIS2BOX_STORAGE_": _STORE,
    "WIS2BOX_API_": _OBSERVATIONS,
    "WIS2BOX_DOCKER_API_URL": _OBSERVATIONS,
    "WIS2BOX_OAPI_": _OBSERVATIONS,
    "WIS2BOX_DATADIR": _without("a hub keeps its state in a directory of its own: the setting data_dir"),
    "WIS2BOX_HOST_DATADIR": _without("a hub keeps its state in a directory of its own: the setting data_dir"),
    "WIS2BOX_DATADIR_DATA_MAPPINGS": _OTHER_FILE,
    "WIS2BOX_LOGGING_": _LOG,
    "WIS2BOX_BASEMAP_": _MAP,
    "WIS2BOX_UI_": _MAP,
    "WIS2BOX_WEBAPP_": _PAGE,
    "WIS2BOX_AUTH_": _without("announced products are served without a login; data with access control stay there"),
    "WIS2BOX_SSL_": _without("put a proxy with TLS before the hub, which forwards /wis2/ alone"),
    "MINIO_": _STORE,
    "BUFR_": _CONVERTS,
    "DOCKER_GID": _without("a hub starts no containers"),
    "DOWNLOAD_BROKER_": CONVERTED,
    "DOWNLOAD_WORKERS": _WORKERS,
    "DOWNLOAD_MIN_FREE_SPACE_GB": _FREE_SPACE,
    "DOWNLOAD_VALIDATE_TOPICS": _CHECKED,
    "DOWNLOAD_RETENTION_PERIOD": _AGE,
    "DOWNLOAD_RETENTION_PERIOD_HOURS": _AGE,
    "DOWNLOAD_DIR": _FILES,
    "DOWNLOAD_CHUNK_SIZE": _without("the node chooses the size of its reads"),
    "GLOBAL_BROKER_": CONVERTED,
    "MQTT_PROTOCOL": CONVERTED,
    "MQTT_VERSION": CONVERTED,
    "MQTT_SESSION_ID": _SESSION,
    "HOST_DATA_PATH": _FILES,
    "CONTAINER_DATA_PATH": _FILES,
    "DATA_BASEPATH": _FILES,
    "GC_EXCLUDE": _without("a source takes the link of the notification, whichever cache it names"),
    "GDC_": _without("a source's topics are given by the user, not chosen from a catalogue by this file"),
    "REDIS_TTL_SECONDS": _carried("copies are known by data id and digest for two days"),
    "REDIS_MESSAGE_LOCK": _carried("each data id is fetched once at a time"),
    "REDIS_": _REDIS,
    "CELERY_": _REDIS,
    "SCHEDULER_": _REDIS,
    "HOUSEKEEP_": _REDIS,
    "FLASK_": _PAGE,
    "STORAGE_SECRET": _PAGE,
    "WIS2DOWNLOADER_CONFIG": _OTHER_FILE,
    "WIS2DOWNLOADER_": _PAGE,
    "LOG_LEVEL": _LOG,
    "LOGGING_LEVEL": _LOG,
}
"""Variables, or their beginnings."""

KNOWN_ENVIRONMENT = ("WIS2BOX_", "DOWNLOAD_BROKER_", "GLOBAL_BROKER_", "WIS2DOWNLOADER_", "DOWNLOAD_RETENTION_PERIOD")
"""Beginnings of variables by one of which an environment file is known as one of these programs."""

DOWNLOADER = {
    **dict.fromkeys(("broker", "broker_url", "broker_hostname", "broker_port", "broker_protocol"), CONVERTED),
    **dict.fromkeys(("protocol", "broker_username", "username", "broker_password", "password"), CONVERTED),
    **dict.fromkeys(("topics", "brokers", "mqtt_version"), CONVERTED),
    "base_url": _LISTEN,
    "download_workers": _WORKERS,
    "download_dir": _FILES,
    "download_directory": _FILES,
    "flask_host": _LISTEN,
    "flask_port": _LISTEN,
    "log_level": _LOG,
    "log_path": _LOG,
    "log_dir": _LOG,
    "save_logs": _LOG,
    "min_free_space": _FREE_SPACE,
    "max_disk_usage": _FREE_SPACE,
    "mqtt_session_info": _OTHER_FILE,
    "validate_topics": _CHECKED,
    "client_id": _SESSION,
    "cache-blacklist": _without("a source takes the link of the notification, whichever cache it names"),
}
"""Keys of wis2downloader's JSON file, and of the file of its subscriptions."""

PYWIS = {
    **dict.fromkeys(("broker", "subscribe_topics", "topics", "qos", "sub_protocol_version"), CONVERTED),
    "client_id": _SESSION,
    "clean_session": _carried("a source keeps its session at the broker while the hub is away"),
    "verify_data": _carried("length and digest are checked before anything is stored"),
    "validate_message": _carried("each notification is checked; the refused ones: downburst bridges passed-over"),
    "verify_certs": _carried("certificates are checked"),
    "certfile": _without("a source signs in by user and password, not by a certificate"),
    "keyfile": _without("a source signs in by user and password, not by a certificate"),
    "storage.type": _FILES,
    "storage.options.basedir": _FILES,
    "storage.options.path": _FILES,
    "storage.options.filepath": _FILES,
    "storage.options": _STORE,
    "bbox": _without("a source takes whole topics, wherever their data are from"),
    "hook": _without("a site runs programs for products, by its rules: downburst-node receive --actions"),
    "publish_topic": _without("it is one publication by hand; a publisher needs a dataset: downburst publishers add"),
    "content_type": _without("it is one publication by hand; a publisher needs a dataset: downburst publishers add"),
}
"""Keys of pywis-pubsub's YAML file."""

SERVICES = {
    "traefik": _without("put a proxy with TLS before the hub, which forwards /wis2/ alone"),
    "nginx": _without("put a proxy with TLS before the hub, which forwards /wis2/ alone"),
    "web-proxy": _without("put a proxy with TLS before the hub, which forwards /wis2/ alone"),
    "loki": _LOG,
    "grafana": _carried("the page shows rates and latencies; dashboards for Grafana are in monitoring/"),
    "prometheus": _carried("/metrics of the hub is read by any Prometheus"),
    "redis": _REDIS,
    "celery-": _WORKERS,
    "mosquitto": _carried("the broker stays; publishers announce there"),
    "minio": _STORE,
    "elasticsearch": _OBSERVATIONS,
    "subscription-manager": _carried("downburst bridges"),
    "wis2downloader-ui": _PAGE,
}
"""Services of a compose file by their names."""

SUBSCRIBER = _carried("the hub subscribes itself: downburst bridges")
NO_CONTAINERS = _without("a hub starts no containers")

_CONTACT = _without("a record names the contact's organization, e-mail, site and country")
_THEME = _carried("the theme of the record: the discipline of the topic")
DATASET = {
    "wis2box.topic_hierarchy": CONVERTED,
    "wis2box.centre_id": CONVERTED,
    "wis2box.country": CONVERTED,
    "wis2box.data_mappings": CONVERTED,
    "wis2box.retention": _carried(
        "the feed keeps 24 h, the duty of a WIS2 node; more: downburst feeds set FEED --retention-hours"
    ),
    "mcf.version": CONVERTED,
    "metadata.identifier": CONVERTED,
    "metadata.hierarchylevel": _carried("the record is one of a dataset"),
    "metadata.charset": _carried("records are UTF-8"),
    "identification.charset": _carried("records are UTF-8"),
    "identification.title": CONVERTED,
    "identification.abstract": CONVERTED,
    "identification.keywords.default.keywords": CONVERTED,
    "identification.keywords.wmo": _THEME,
    "identification.extents.spatial.bbox": CONVERTED,
    "identification.extents.spatial.crs": _without("bounds are in degrees of WGS 84; check those of the publisher"),
    "identification.extents.temporal.begin": CONVERTED,
    "identification.extents.temporal.end": _without("a record is of data that go on"),
    "identification.extents.temporal.resolution": _without("a record does not state the resolution in time"),
    "identification.dates": _without("a record states the begin of the data, and the time of its own update"),
    "identification.license.url": CONVERTED,
    "identification.wmo_data_policy": _carried("the policy is the first level of the publisher's topic"),
    "identification.rights": _without("a record states rights by the address of a licence: describe --license"),
    "identification.url": _without("a record links to the notifications and the licence alone"),
    "contact": _CONTACT,
}
"""Keys of a metadata control file (MCF) of wis2box."""

PLUGINS = {
    "wis2box.data.universal.UniversalData": _carried("products are announced as they come"),
    "wis2box.data.cap_message.CAPMessageData": _carried("products are announced as they come; CAP is not validated"),
    "wis2box.data.message.MessageData": _carried("products are announced as they come"),
    "wis2box.data.bufr4.ObservationDataBUFR": _without("messages of BUFR are announced as they come, not split"),
    "wis2box.data.bufr2geojson.ObservationDataBUFR2GeoJSON": _OBSERVATIONS,
    "wis2box.data.geojson.ObservationDataGeoJSON": _OBSERVATIONS,
    "wis2box.data.csv2bufr.ObservationDataCSV2BUFR": _CONVERTS,
    "wis2box.data.synop2bufr.ObservationDataSYNOP2BUFR": _CONVERTS,
}
"""Plugins that a dataset of wis2box names."""

OF_PLUGINS = {"template": _CONVERTS, "buckets": _STORE}
"""Keys of such a plugin beside its name, its pattern, and whether it announces."""

OTHER_PLUGIN = _without("programs do not run within the hub; have it write files, and watch their directory")
