"""Circuits ordered from other networks: a requester of the NSI Connection Service 2 (GFD.237), spoken as SOAP 1.1.

No clock, socket or file but in `transport`: `order` takes time and answers and returns requests and verdicts,
`requester` carries them. A provider's word is never proof: active means probes may begin.
"""
