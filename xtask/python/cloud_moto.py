"""moto's S3 server with connections that stay open: `cloud_moto.py PORT`."""

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


app = DomainDispatcherApplication(create_backend_app)
make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True, request_handler=Handler).serve_forever()
