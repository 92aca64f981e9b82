// Compiled by the builder with the Go that is there: of each version since this one.
module tally/imports

go 1.18
