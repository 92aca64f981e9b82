"""GET / lists the notes, POST / adds the body as one."""

import json
from http.server import BaseHTTPRequestHandler

from notes.store import Store, StoreError

MOST_BYTES = 64 * 1024


def handler_for(store: Store, known_as: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answered(lambda: {"notes": store.all(), "at": known_as})

        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            if size > MOST_BYTES:
                return self._say(413, {"error": f"a note has at most {MOST_BYTES} bytes"})
            text = self.rfile.read(size).decode("utf-8", "replace").replace("\0", "")

            def add() -> dict:
                store.add(text)
                return {"notes": store.all(), "at": known_as}

            return self._answered(add)

        def _answered(self, work) -> None:
            try:
                self._say(200, work())
            except StoreError as error:
                self._say(503, {"error": str(error)})

        def _say(self, status: int, value: dict) -> None:
            body = (json.dumps(value) + "\n").encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args) -> None:
            pass

    return Handler
