// Says what Go files import and what go.mod and go.work files hold. It reads the files and no more of their modules: nothing is
// resolved, fetched or run. Paths come in on standard input, each ended by a NUL and relative to the working
// directory; for each a line of JSON goes out, in no order, with its number.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Imports stand before all else, so that no more of a file is needed; a file whose imports go on after that does not parse.
const mostSourceBytes = 1 << 20

const mostModuleBytes = 1 << 20
const moduleWithin = 30 * time.Second

type imported struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

type trouble struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

type answer struct {
	File    int             `json:"file"`
	Imports []imported      `json:"imports,omitempty"`
	Module  json.RawMessage `json:"module,omitempty"`
	// Of a go.mod: what stands in each of its lines, for evidence.
	Lines   []string `json:"lines,omitempty"`
	Trouble *trouble `json:"trouble,omitempty"`
}

func main() {
	listed, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Stderr.WriteString("read the list of files: " + err.Error() + "\n")
		os.Exit(1)
	}
	paths := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	var writing sync.Mutex
	numbers := make(chan int)
	var working sync.WaitGroup
	for worker := 0; worker < runtime.GOMAXPROCS(0); worker++ {
		working.Add(1)
		go func() {
			defer working.Done()
			for number := range numbers {
				found := look(paths[number])
				if found == nil {
					continue
				}
				found.File = number
				line, err := json.Marshal(found)
				if err != nil {
					line, _ = json.Marshal(answer{File: number, Trouble: &trouble{1, err.Error()}})
				}
				writing.Lock()
				out.Write(append(line, '\n'))
				writing.Unlock()
			}
		}()
	}
	for number := range paths {
		numbers <- number
	}
	close(numbers)
	working.Wait()
	if err := out.Flush(); err != nil {
		os.Exit(1)
	}
}

// nil: there is nothing to say of it.
func look(name string) *answer {
	switch path.Base(name) {
	case "go.mod":
		return lookAtModule(name, "mod")
	case "go.work":
		return lookAtModule(name, "work")
	}
	return lookAtSource(name)
}

func lookAtSource(name string) *answer {
	source, _, err := read(name, mostSourceBytes)
	if err != nil {
		return &answer{Trouble: &trouble{1, err.Error()}}
	}
	// One a file: it costs nothing, and the parser's own would grow with each file of the tree.
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", source, parser.ImportsOnly|parser.SkipObjectResolution)
	found := &answer{}
	if parsed != nil {
		for _, spec := range parsed.Imports {
			value, unquoted := strconv.Unquote(spec.Path.Value)
			if unquoted != nil || value == "C" || isStandard(value) {
				continue
			}
			// A `//line` comment moves positions to the file that this one was made from: not here.
			found.Imports = append(found.Imports, imported{value, files.PositionFor(spec.Path.Pos(), false).Line})
		}
	}
	if err != nil {
		found.Trouble = &trouble{1, err.Error()}
		var several scanner.ErrorList
		if errors.As(err, &several) && len(several) > 0 {
			before := source
			if at := several[0].Pos.Offset; at < len(source) {
				before = source[:at]
			}
			found.Trouble = &trouble{1 + bytes.Count(before, []byte{'\n'}), several[0].Msg}
		}
	}
	if found.Trouble == nil && len(found.Imports) == 0 {
		return nil
	}
	return found
}

// By Go's own command, which changes nothing here: `edit` without an edit only prints.
func lookAtModule(name, verb string) *answer {
	source, whole, err := read(name, mostModuleBytes)
	if err == nil && !whole {
		err = errors.New("it is larger than 1 MiB")
	}
	if err != nil {
		return &answer{Trouble: &trouble{1, err.Error()}}
	}
	within, done := context.WithTimeout(context.Background(), moduleWithin)
	defer done()
	// The command heeds the ending of a name, and a `-` at its beginning.
	absolute, err := filepath.Abs(name)
	if err != nil {
		return &answer{Trouble: &trouble{1, err.Error()}}
	}
	command := exec.CommandContext(within, "go", verb, "edit", "-json", absolute)
	command.Dir = os.TempDir()
	var said bytes.Buffer
	command.Stderr = &said
	shown, err := command.Output()
	if within.Err() != nil {
		os.Stderr.WriteString("go " + verb + " edit -json took longer than 30 s\n")
		os.Exit(1)
	}
	if err != nil {
		reason, line := firstComplaint(said.String(), absolute)
		return &answer{Trouble: &trouble{line, reason}}
	}
	return &answer{Module: shown, Lines: telling(source)}
}

// `go: errors parsing PATH:` and then `PATH:3: unknown directive: x`, or `PATH:3:7: …`.
func firstComplaint(said, absolute string) (string, int) {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, line := range lines {
		at := strings.Index(line, ":")
		if !strings.Contains(line, path.Base(absolute)+":") || strings.HasSuffix(line, ":") || at == -1 {
			continue
		}
		rest := line[strings.LastIndex(line, path.Base(absolute)+":")+len(path.Base(absolute))+1:]
		number, reason, _ := strings.Cut(rest, ":")
		if value, err := strconv.Atoi(number); err == nil {
			if column, after, isThere := strings.Cut(reason, ":"); isThere {
				if _, err := strconv.Atoi(column); err == nil {
					reason = after
				}
			}
			return strings.TrimSpace(reason), value
		}
	}
	return strings.ReplaceAll(lines[len(lines)-1], absolute, path.Base(absolute)), 1
}

// Lines without their comments, so that whoever looks for a name finds what was parsed.
func telling(source []byte) []string {
	lines := strings.Split(string(source), "\n")
	for at, line := range lines {
		line, _, _ = strings.Cut(line, "//")
		lines[at] = strings.TrimSpace(line)
	}
	return lines
}

// No link is followed and no pipe waited for.
func read(name string, most int64) (source []byte, whole bool, err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, errors.New("it cannot be opened: " + err.Error()[strings.LastIndex(err.Error(), ": ")+2:])
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil || !about.Mode().IsRegular() {
		return nil, false, errors.New("it is no file")
	}
	size := about.Size()
	if size > most {
		size = most
	}
	source = make([]byte, size)
	if _, err = io.ReadFull(file, source); err != nil {
		return nil, false, errors.New("it cannot be read")
	}
	return source, about.Size() <= most, nil
}

var standard sync.Map

// The standard library is what lies in Go's own sources: no module can take a name of it.
func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	if strings.Contains(first, ".") || first == "" {
		return false
	}
	known, isKnown := standard.Load(name)
	if !isKnown {
		about, err := os.Stat(filepath.Join(os.Getenv("GOROOT"), "src", filepath.FromSlash(path.Clean("/"+name))))
		known = err == nil && about.IsDir()
		standard.Store(name, known)
	}
	return known.(bool)
}
