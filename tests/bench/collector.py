#!/usr/bin/env python3
"""A collector of OpenTelemetry for the benchmarks: takes spans by OTLP over HTTP, counts them and forgets them.

    collector.py PORT         GET / says how many have come
"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    spans = 0

    def answer(self, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(str(Handler.spans))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Handler.spans += body.count(b'"spanId"')
        self.answer("{}")

    def log_message(self, *_):
        pass


# Each process of the service keeps a connection.
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
