module example.org/board-types

go 1.21

require example.org/core v0.0.0
