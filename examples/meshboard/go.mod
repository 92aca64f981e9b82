module example.org/meshboard

go 1.21
