// Package board answers what this machine's board shows.
package board

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	boardtypes "example.org/board-types"
)

// Version is what the board says of itself; a change of it is seen in every answer.
const Version = "1"

// Config is read from one JSON file.
type Config struct {
	Node    string `json:"node"`
	Address string `json:"address"`
}

// Load reads a Config and says what is missing in it.
func Load(path string) (Config, error) {
	var config Config
	text, err := os.ReadFile(path)
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return config, fmt.Errorf("%s: %w", path, err)
	}
	if config.Node == "" || config.Address == "" {
		return config, fmt.Errorf("%s: needs node and address", path)
	}
	return config, nil
}

// Greeting is the line that the board shows.
func Greeting(node string) string {
	return fmt.Sprintf("meshboard %s on %s", Version, node)
}

// Handler answers / with what the board is and /healthz with ok.
func Handler(config Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := boardtypes.Of("meshboard", Version, config.Node, Greeting(config.Node))
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			fmt.Fprintln(os.Stderr, "meshboard:", err)
		}
	})
	return mux
}
