package board

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnswersWithItsVersionAndNode(t *testing.T) {
	server := httptest.NewServer(Handler(Config{Node: "alpha", Address: "unused"}))
	defer server.Close()
	response, err := http.Get(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer map[string]string
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer["node"] != "alpha" || answer["version"] != Version {
		t.Errorf("answered %v", answer)
	}
}

func TestGreetingNamesTheBoardAndTheNode(t *testing.T) {
	if got := Greeting("beta"); !strings.HasPrefix(got, "meshboard ") || !strings.HasSuffix(got, " on beta") {
		t.Errorf("greeted %q", got)
	}
}

func TestLoadSaysWhatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meshboard.json")
	if err := os.WriteFile(path, []byte(`{"node":"alpha"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "needs node and address") {
		t.Errorf("loaded with %v", err)
	}
}
