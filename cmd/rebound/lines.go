package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// eachLine writes the answer to each line of input as a line of JSON, for the named command.
// It reports and skips lines that are invalid or longer than limit bytes. It returns the exit
// code: 0 for success, 1 if a line is invalid, 2 if all are.
func eachLine(command string, limit int, in io.Reader, stdout, stderr io.Writer, answer func(line []byte) (any, error)) int {
	out := bufio.NewWriter(stdout)
	lines := bufio.NewReader(in)
	done, bad := 0, 0
	complain := func(line int, err error) {
		bad++
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) && wrong.Field != "" {
			err = fmt.Errorf("%s: is a %s, and must be a %s", wrong.Field, wrong.Value, wrong.Type.Kind())
		}
		fmt.Fprintf(stderr, "rebound %s: line %d: %v\n", command, line, err)
	}
	for n := 1; ; n++ {
		line, err := readLine(lines, limit)
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if result, problem := answer(trimmed); problem != nil {
				complain(n, problem)
			} else if problem := writeJSON(out, result); problem != nil {
				fmt.Fprintf(stderr, "rebound %s: writing: %v\n", command, problem)
				return 2
			} else {
				done++
			}
		}
		if errors.Is(err, errLongLine) {
			complain(n, fmt.Errorf("the line is longer than %d bytes", limit))
		}
		switch {
		case errors.Is(err, io.EOF):
			if err := out.Flush(); err != nil {
				fmt.Fprintf(stderr, "rebound %s: writing: %v\n", command, err)
				return 2
			}
			switch {
			case done == 0 && bad == 0:
				fmt.Fprintf(stderr, "rebound %s: the input is empty\n", command)
				return 2
			case done == 0:
				return 2
			case bad > 0:
				return 1
			}
			return 0
		case err != nil && !errors.Is(err, errLongLine):
			_ = out.Flush() // keep the answers so far
			fmt.Fprintf(stderr, "rebound %s: reading: %v\n", command, err)
			return 2
		}
	}
}

var errLongLine = errors.New("the line is too long")

// readLine returns the next line, which may be longer than the reader's buffer. It skips a
// line longer than limit bytes and returns errLongLine.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && err == nil:
			return nil, errLongLine
		case long && errors.Is(err, io.EOF):
			return nil, errors.Join(errLongLine, io.EOF)
		}
		return line, err
	}
}

// writeJSON writes a value as one line of JSON.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
