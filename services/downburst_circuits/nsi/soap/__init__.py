"""The Connection Service as XML of SOAP 1.1: requests to bytes, bytes of others to typed words or one sentence."""
