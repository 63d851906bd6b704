"""Makes a container in Azurite: `cloud_azure.py HOST:PORT ACCOUNT KEY CONTAINER`."""

import base64
import hashlib
import hmac
import sys
import urllib.request
from email.utils import formatdate

address, account, key, container = sys.argv[1:]
headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
# Verb, eleven standard headers that are not sent, ours, the resource.
lines = ["PUT", *[""] * 11, *[f"{name}:{value}" for name, value in sorted(headers.items())]]
lines += [f"/{account}/{account}/{container}", "restype:container"]
digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
headers["Content-Length"] = "0"
url = f"http://{address}/{account}/{container}?restype=container"
urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=30)
