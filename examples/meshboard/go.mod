module example.org/meshboard

go 1.21

require example.org/board-types v0.0.0

require example.org/core v0.0.0 // indirect
