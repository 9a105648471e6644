package count

import (
	"encoding/base64"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

// part counts one part of a content list. Base64 is never counted as text.
func (s *scale) part(part gjson.Result, depth int) weight {
	w := weight{exact: true}
	if part.Type == gjson.String {
		return weight{text: s.Count(part.Str), exact: s.Exact}
	}
	kind, p := payload(part)
	if part.Get("type").Str == "tool_use" {
		return w // counted as a call
	}
	switch kind {
	case partText:
		w.text = s.Count(part.Get("text").String())
		w.exact = s.Exact
		return w
	case partImage:
		w.media = s.vision.image(p)
	case partSound:
		w.media = s.sound(p)
	case partFile:
		w.media = s.file(p)
	default:
		if inner := part.Get("content"); inner.IsArray() && depth < proseDepth {
			inner.ForEach(func(_, v gjson.Result) bool { // a result in a part
				w = w.add(s.part(v, depth+1))
				return true
			})
		} else if n := s.prose(part, 0); n > 0 {
			w.text = n
		} else {
			w.text = s.Count(part.Raw)
		}
	}
	w.exact = false
	return w
}

// partKind is what a part of a message is.
type partKind uint8

const (
	partOther partKind = iota
	partText
	partImage
	partSound
	partFile
)

// media is the payload of a part that is no text.
type media struct {
	data   string // base64 without the head of a data: URL, "" when given by reference
	mime   string // lower case, "" when not stated
	detail string // of images
}

// partKindOf tells what a part is by the name of its type, whatever the provider.
func partKindOf(name string) partKind {
	switch {
	case strings.Contains(name, "image"), strings.Contains(name, "screenshot"):
		return partImage
	case strings.Contains(name, "audio"):
		return partSound
	case strings.Contains(name, "file"), strings.Contains(name, "document"), strings.Contains(name, "video"):
		return partFile
	}
	return partOther
}

// payload tells what a part is. Providers differ in where they put the data of
// a part, but all name its kind: image_url, input_image, image; input_audio;
// file, input_file, document. A part has its payload under the name of its
// type, or in fields of its own.
func payload(part gjson.Result) (partKind, media) {
	name := part.Get("type").Str
	kind := partKindOf(name)
	if kind == partOther {
		if part.Get("text").Type == gjson.String {
			kind = partText
		}
		return kind, media{}
	}
	var m media
	read := func(holder gjson.Result) {
		if holder.Type == gjson.String {
			m.take(holder.Str)
			return
		}
		holder.ForEach(func(name, v gjson.Result) bool {
			if v.Type != gjson.String {
				return true
			}
			switch name.Str {
			case "url", "image_url", "data", "file_data":
				m.take(v.Str)
			case "detail":
				m.detail = v.Str
			case "media_type", "mime_type", "format":
				m.mime = strings.ToLower(headOf(v.Str, 64))
			}
			return true
		})
	}
	read(part)
	part.ForEach(func(field, v gjson.Result) bool {
		if field.Str == name || field.Str == "source" {
			read(v)
		}
		return true
	})
	return kind, m
}

// take reads a data: URL or bare base64; other references leave data empty.
func (m *media) take(s string) {
	if rest, ok := strings.CutPrefix(s, "data:"); ok {
		head, data, _ := strings.Cut(rest, ",")
		m.mime, m.data = strings.ToLower(headOf(strings.TrimSuffix(head, ";base64"), 64)), data
	} else if len(s) >= 64 && !strings.Contains(s[:64], ":") {
		m.data = s
	}
}

func headOf(s string, n int) string { return s[:min(n, len(s))] }

// bytes is the size of the payload without its encoding.
func (m media) bytes() int { return len(m.data) / 4 * 3 }

// Rates of sound in tokens a second: OpenAI counts one for each 100 ms
// (https://platform.openai.com/docs/guides/realtime-costs), Gemini 32 a second
// (https://ai.google.dev/gemini-api/docs/tokens), which stands for all others.
const (
	soundOpenAI = 10
	soundOther  = 32
	// soundBytes is a second of compressed speech: 64 kbit/s.
	soundBytes = 8000
	soundTail  = 30 // seconds, where nothing is known
)

// sound estimates the tokens of a recording.
func (s *scale) sound(m media) int {
	rate := soundOther
	if s.Exact {
		rate = soundOpenAI
	}
	if m.data == "" {
		return rate * soundTail
	}
	second := soundBytes
	if head := decodeHead(m.data, 64); len(head) >= 32 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WAVE" {
		if n := int(head[28]) | int(head[29])<<8 | int(head[30])<<16 | int(head[31])<<24; n >= 1000 && n < 1<<24 {
			second = n // the header's bytes a second
		}
	}
	return (m.bytes() + second - 1) / second * rate
}

// A file's tokens cannot be known without reading it: providers give a PDF's
// text and the picture of each page (https://platform.openai.com/docs/guides/pdf-files,
// https://docs.anthropic.com/en/docs/build-with-claude/pdf-support: 1,500 to 3,000 a page).
const (
	pageBytes  = 50_000
	pageTokens = 2_000
)

// file estimates the tokens of a file.
func (s *scale) file(m media) int {
	switch {
	case m.data == "":
		return pageTokens
	case strings.HasPrefix(m.mime, "text/"):
		return m.bytes()/4 + 1
	}
	return (m.bytes() + pageBytes - 1) / pageBytes * pageTokens
}

// decodeHead decodes the beginning of base64 of either alphabet, with or without line
// breaks, up to n bytes. What is not base64 ends it.
func decodeHead(data string, n int) []byte {
	alphabet := base64.RawStdEncoding
	if strings.ContainsAny(headOf(data, 2*n), "-_") {
		alphabet = base64.RawURLEncoding
	}
	out := make([]byte, min(n, len(data)))
	got, _ := io.ReadFull(base64.NewDecoder(alphabet, strings.NewReader(strings.TrimRight(data, "="))), out) // what came before an error is what there is
	return out[:got]
}
