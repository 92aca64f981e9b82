"""Notes in PostgreSQL, by the machine's psql: where it is, and the password, stand in the environment (PGHOST, PGPASSWORD)."""

import json
import subprocess

TIMEOUT_S = 10


class StoreError(Exception):
    """The database did not do it; one line."""


class Store:
    def __init__(self, psql: str = "psql") -> None:
        self._psql = psql

    def prepare(self) -> None:
        self._ask("set client_min_messages = warning; create table if not exists note (id bigint generated always as identity primary key, text text not null);")

    def add(self, text: str) -> None:
        self._ask("insert into note (text) values (:'text');", text=text)

    def all(self) -> list[str]:
        return json.loads(self._ask("select coalesce(json_agg(text order by id), '[]') from note;"))

    def _ask(self, sql: str, **values: str) -> str:
        variables = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
        command = [self._psql, "-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1", *variables]
        try:
            ended = subprocess.run(command, input=sql, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"psql: {error}") from error
        if ended.returncode != 0:
            raise StoreError(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f"psql ended with {ended.returncode}")
        return ended.stdout.strip()
