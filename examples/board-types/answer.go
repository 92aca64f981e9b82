// Package boardtypes is the answer of a board, the same for whoever serves or reads one.
package boardtypes

import "example.org/core"

// Answer is what a board says of itself.
type Answer struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Node     string `json:"node"`
	Greeting string `json:"greeting"`
	Motto    string `json:"motto"`
}

// Of fills in what all boards say alike.
func Of(module, version, node, greeting string) Answer {
	return Answer{Module: module, Version: version, Node: node, Greeting: greeting, Motto: core.Motto}
}
