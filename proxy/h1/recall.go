package h1

import (
	"bytes"
	"net/http"
	"strings"
)

// recall is what a connection remembers of its last head: the heads of one
// client, or of one server, hardly differ. A line that is the same at the same
// place, byte for byte, is neither checked nor copied again, and of one in
// which only the value is another only that is looked at. What the messages of a
// connection share are strings: each has its own map and slices. What a head
// means for the framing of its message is found anew each time.
//
// Nothing is remembered before the second head, so that a connection for a
// single message costs nothing. The zero value is ready to use, by one goroutine
// at a time.
type recall struct {
	begun bool // the next head is to be remembered
	last  *lastHead
}

// lastHead is a head that was checked, and how the one that comes differs.
type lastHead struct {
	sent   string // as it came; "" if it is too large to be remembered
	first  string // line, without its end
	start  int    // of the others
	lines  []known
	repeat bool // a name comes more than once

	length   int // of the head that comes, 0 if it is too different
	newFirst int // length of its first line, 0 if that is the same
	news     []newValue
}

// known is a header line.
type known struct {
	name, value string // canonical, and trimmed
	end         int    // in what was sent
}

// newValue is where in the head that comes a line has another value.
type newValue struct{ line, from, to uint16 }

const (
	// maxRecall bounds the bytes of a head that is remembered.
	maxRecall = 1536
	// maxRecallLines bounds its lines.
	maxRecallLines = 24
	// maxRecalled bounds one that is like it.
	maxRecalled = 8 << 10
)

// match returns the length of the head at the beginning of data if it has come
// as a whole and differs from the last one only in values and the first line; or else 0.
func (m *recall) match(data []byte) int {
	l := m.last
	if l == nil || l.sent == "" {
		return 0
	}
	l.length, l.newFirst, l.news = 0, 0, l.news[:0]
	if len(data) >= len(l.sent) && string(data[:len(l.sent)]) == l.sent {
		l.length = len(l.sent)
	} else {
		l.length = l.compare(data[:min(len(data), maxRecalled)])
	}
	return l.length
}

// compare is match line by line. A changed line must have its name in the same
// spelling, and a value that may be one.
func (l *lastHead) compare(data []byte) int {
	was := l.start
	at := was
	if len(data) < was || string(data[:was]) != l.sent[:was] {
		at = bytes.IndexByte(data, '\n') + 1
		l.newFirst = at
	}
	if at == 0 {
		return 0
	}
	for i := range l.lines {
		k := &l.lines[i]
		old, rest := l.sent[was:k.end], data[at:]
		was = k.end
		if len(rest) >= len(old) && string(rest[:len(old)]) == old {
			at += len(old)
			continue
		}
		end, name := bytes.IndexByte(rest, '\n'), len(k.name)+1
		if end < name || string(rest[:name]) != old[:name] {
			return 0
		}
		value := bytes.TrimSuffix(rest[name:end], []byte{'\r'})
		if !validValue(value) {
			return 0
		}
		l.news = append(l.news, newValue{uint16(i), uint16(at + name), uint16(at + name + len(value))})
		at += end + 1
	}
	switch end := data[at:]; {
	case len(end) > 0 && end[0] == '\n':
		return at + 1
	case len(end) > 1 && end[0] == '\r' && end[1] == '\n':
		return at + 2
	}
	return 0
}

// fields is a head that was checked.
type fields struct {
	first  string // line
	header http.Header
	hosts  []string // values of Host
}

// head checks a head, complete with its empty line, with which match was asked
// last. There is room in the map for a few more; Host is not in it if apart is
// set. It changes raw and keeps nothing of it. slab becomes the memory of the
// values if it has room for them.
func (m *recall) head(raw []byte, slab []string, room int, apart bool) (f fields, err error) {
	if l := m.last; l != nil && l.length == len(raw) {
		if f.first = l.first; l.newFirst > 0 {
			f.first = firstLine(string(raw[:l.newFirst]))
		}
		slab = sized(slab, len(l.lines))
		l.values(raw, slab)
		f.header = make(http.Header, len(slab)+room)
		for i := range l.lines {
			f.add(l.lines[i].name, slab[i:i+1:i+1], l.repeat, apart)
		}
		return f, nil
	}
	sent := ""
	if m.begun && len(raw) <= maxRecall {
		sent = string(raw)
	}
	lines, err := checkHead(raw)
	if err != nil {
		return f, err
	}
	text := sent
	if string(raw) != sent {
		text = string(raw) // it is not to be remembered, or its names were not spelt canonically
	}
	first, rest, _ := strings.Cut(text, "\n")
	f.first = firstLine(first)
	slab = sized(slab, lines)
	f.header = make(http.Header, lines+room)
	for i := range slab {
		name, value, length := field(rest)
		rest = rest[length:]
		slab[i] = value
		f.add(name, slab[i:i+1:i+1], true, apart)
	}
	m.keep(sent, text, lines)
	if m.last != nil {
		m.last.repeat = len(f.header)+len(f.hosts) < lines
	}
	return f, nil
}

// add adds a header line; values is memory that nobody else has. repeat is false
// if it is known to be the only one of that name.
func (f *fields) add(name string, values []string, repeat, apart bool) {
	if apart && name == "Host" {
		if f.hosts != nil {
			values = append(f.hosts, values...)
		}
		f.hosts = values
		return
	}
	if repeat {
		if old := f.header[name]; old != nil {
			f.header[name] = append(old, values[0])
			return
		}
	}
	f.header[name] = values
}

// field splits the first of lines that were checked; length is that with its end.
func field(s string) (name, value string, length int) {
	end, colon := strings.IndexByte(s, '\n'), strings.IndexByte(s, ':')
	return s[:colon], trimmedValue(strings.TrimSuffix(s[colon+1:end], "\r")), end + 1
}

// trimmedValue is what follows the colon without white space around it.
func trimmedValue(s string) string { return trimmed(strings.TrimPrefix(s, " ")) }

// firstLine is a line without its end.
func firstLine(l string) string { return strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r") }

// values puts the values of the head that comes into slab, in the order of the lines.
func (l *lastHead) values(raw []byte, slab []string) {
	for i := range l.lines {
		slab[i] = l.lines[i].value
	}
	if len(l.news) == 0 {
		return
	}
	from := l.news[0].from
	text := string(raw[from:l.news[len(l.news)-1].to])
	for _, n := range l.news {
		slab[n.line] = trimmedValue(text[n.from-from : n.to-from])
	}
}

// keep remembers a head that was checked, unless sent is empty: text is the
// same with canonical names.
func (m *recall) keep(sent, text string, lines int) {
	if lines > maxRecallLines {
		sent = ""
	}
	m.begun = true
	if sent == "" {
		if m.last != nil {
			m.last.sent, m.last.length = "", 0
		}
		return
	}
	if m.last == nil {
		m.last = &lastHead{}
	}
	l := m.last
	l.sent, l.start, l.length = sent, strings.IndexByte(sent, '\n')+1, 0
	l.first = firstLine(text[:l.start])
	if l.lines = l.lines[:0]; cap(l.lines) < lines {
		l.lines = make([]known, 0, lines)
	}
	at := l.start
	for range lines {
		name, value, length := field(text[at:])
		at += length
		l.lines = append(l.lines, known{name, value, at})
	}
}

// sized is memory for as many values.
func sized(slab []string, n int) []string {
	if n > len(slab) {
		return make([]string, n)
	}
	return slab[:n]
}
