// Command meshboard serves the board of one machine until it is told to stop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.org/meshboard/board"
)

func main() {
	path := flag.String("config", "/etc/meshboard.json", "the configuration file")
	flag.Parse()
	if err := serve(*path); err != nil {
		fmt.Fprintln(os.Stderr, "meshboard:", err)
		os.Exit(1)
	}
}

func serve(path string) error {
	config, err := board.Load(path)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: config.Address, Handler: board.Handler(config), ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		shutdown, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(shutdown)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
