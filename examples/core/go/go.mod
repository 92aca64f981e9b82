module example.org/core

go 1.21
