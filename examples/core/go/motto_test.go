package core

import "testing"

func TestMottoIsSaid(t *testing.T) {
	if Motto == "" {
		t.Fatal("the motto is empty")
	}
}
