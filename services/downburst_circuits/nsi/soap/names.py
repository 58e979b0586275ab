"""Namespaces and names of SOAP 1.1 and of NSI's Connection Service 2 on the wire.

Only the envelope, the header, the operation and the service element are qualified: their children have no namespace.
"""

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
TYPES = "http://schemas.ogf.org/nsi/2013/12/connection/types"
HEADERS = "http://schemas.ogf.org/nsi/2013/12/framework/headers"
POINT_TO_POINT = "http://schemas.ogf.org/nsi/2013/12/services/point2point"
FRAMEWORK = "http://schemas.ogf.org/nsi/2013/12/framework/types"
ACTION = "http://schemas.ogf.org/nsi/2013/12/connection/service/"
PROVIDER_PROTOCOL = "application/vnd.ogf.nsi.cs.v2.provider+soap"
REQUESTER_PROTOCOL = "application/vnd.ogf.nsi.cs.v2.requester+soap"


def qualified(namespace: str, name: str) -> str:
    """The name as lxml writes it."""
    return f"{{{namespace}}}{name}"
