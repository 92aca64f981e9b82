#!/bin/sh
# Runs once, on an empty volume: a role and database for the facts, and a role that makes Temporal's own databases.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" \
  --set tally="$TALLY_DATABASE_PASSWORD" --set temporal="$TEMPORAL_DATABASE_PASSWORD" <<'SQL'
create role tally login password :'tally';
create database tally owner tally;
create role temporal login createdb password :'temporal';
SQL
