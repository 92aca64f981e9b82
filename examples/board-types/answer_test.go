package boardtypes

import (
	"testing"

	"example.org/core"
)

func TestAnswerCarriesTheMotto(t *testing.T) {
	if got := Of("m", "1", "alpha", "hello").Motto; got != core.Motto {
		t.Fatalf("the motto is %q and core says %q", got, core.Motto)
	}
}
