import argparse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import greeting


def main() -> None:
    parser = argparse.ArgumentParser(prog="greeter")
    parser.add_argument("--name-file", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    line = greeting(options.name_file.read_text(encoding="utf-8"))

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = ("ok" if self.path == "/healthz" else line).encode() + b"\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line each."""

    ThreadingHTTPServer(("127.0.0.1", options.port), Answer).serve_forever()


main()
