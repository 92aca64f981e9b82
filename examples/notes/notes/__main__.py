import argparse
from http.server import ThreadingHTTPServer

from notes.page import handler_for
from notes.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(prog="notes")
    parser.add_argument("--listen", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--known-as", required=True)
    options = parser.parse_args()
    store = Store()
    store.prepare()
    ThreadingHTTPServer((options.listen, options.port), handler_for(store, options.known_as)).serve_forever()


main()
