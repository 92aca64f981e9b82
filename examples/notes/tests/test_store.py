import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from notes.store import Store, StoreError


def psql_that(script: str) -> str:
    with tempfile.NamedTemporaryFile("w", delete=False, suffix=".sh") as file:
        file.write(f"#!/bin/sh\n{script}\n")
    os.chmod(file.name, 0o700)
    return file.name


class StoreTest(unittest.TestCase):
    def test_gives_the_notes_as_they_are(self) -> None:
        self.assertEqual(Store(psql_that("""echo '["milk", "caf\\u00e9"]'""")).all(), ["milk", "café"])

    def test_says_the_last_line_of_what_psql_said(self) -> None:
        with self.assertRaisesRegex(StoreError, "^no such role$"):
            Store(psql_that("echo first >&2; echo no such role >&2; exit 2")).all()


if __name__ == "__main__":
    unittest.main()
