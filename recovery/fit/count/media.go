package count

import (
	"encoding/base64"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

// part counts one part of a content list. Base64 is never counted as text.
func (s *modelCounter) part(part gjson.Result, depth int) tokenCount {
	w := tokenCount{exact: true}
	if part.Type == gjson.String {
		return tokenCount{text: s.Count(part.Str), exact: s.Exact}
	}
	kind, p := payload(part)
	if part.Get("type").Str == "tool_use" {
		return w // message counts it as a call
	}
	switch kind {
	case partText:
		w.text = s.Count(part.Get("text").String())
		w.exact = s.Exact
		return w
	case partImage:
		w.media = s.vision.mediaTokens(p)
	case partSound:
		w.media = s.sound(p)
	case partFile:
		w.media = s.file(p)
	default:
		if inner := part.Get("content"); inner.IsArray() && depth < proseDepth {
			inner.ForEach(func(_, v gjson.Result) bool { // a tool result
				w = w.add(s.part(v, depth+1))
				return true
			})
		} else if n := s.proseStrings(part, 0); n > 0 {
			w.text = n
		} else {
			w.text = s.Count(part.Raw)
		}
	}
	w.exact = false
	return w
}

// partKind is the kind of a content part.
type partKind uint8

const (
	partOther partKind = iota
	partText
	partImage
	partSound
	partFile
)

// media is the payload of a part that is not text.
type media struct {
	data   string // base64 without the prefix of a data: URL; "" if given by reference
	mime   string // lower case; "" if not stated
	detail string // of images
}

// partKindOf returns the kind of a part by the name of its type, for all providers.
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

// payload returns the kind and the payload of a part. Providers differ in where they put
// the data, but all name the kind: image_url, input_image, image; input_audio; file,
// input_file, document. The payload is in the part itself, in the field named like its type,
// or in "source".
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
			m.setData(holder.Str)
			return
		}
		holder.ForEach(func(name, v gjson.Result) bool {
			if v.Type != gjson.String {
				return true
			}
			switch name.Str {
			case "url", "image_url", "data", "file_data":
				m.setData(v.Str)
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

// setData reads a data: URL or bare base64. Other references leave data empty.
func (m *media) setData(s string) {
	if rest, ok := strings.CutPrefix(s, "data:"); ok {
		head, data, _ := strings.Cut(rest, ",")
		m.mime, m.data = strings.ToLower(headOf(strings.TrimSuffix(head, ";base64"), 64)), data
	} else if len(s) >= 64 && !strings.Contains(s[:64], ":") {
		m.data = s
	}
}

func headOf(s string, n int) string { return s[:min(n, len(s))] }

// bytes returns the approximate size of the decoded payload.
func (m media) bytes() int { return len(m.data) / 4 * 3 }

// Rates of sound in tokens per second: OpenAI counts one per 100 ms
// (https://platform.openai.com/docs/guides/realtime-costs), Gemini 32 per second
// (https://ai.google.dev/gemini-api/docs/tokens), which is used for all others.
const (
	soundOpenAI = 10
	soundOther  = 32
	// soundBytes is the size of a second of compressed speech: 64 kbit/s.
	soundBytes     = 8000
	unknownSeconds = 30 // assumed length of sound given by reference
)

// sound estimates the tokens of a recording.
func (s *modelCounter) sound(m media) int {
	rate := soundOther
	if s.Exact {
		rate = soundOpenAI
	}
	if m.data == "" {
		return rate * unknownSeconds
	}
	second := soundBytes
	if head := decodeHead(m.data, 64); len(head) >= 32 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WAVE" {
		if n := int(head[28]) | int(head[29])<<8 | int(head[30])<<16 | int(head[31])<<24; n >= 1000 && n < 1<<24 {
			second = n // the header's byte rate
		}
	}
	return (m.bytes() + second - 1) / second * rate
}

// A file's tokens are a guess by its size: providers pass on a PDF's text and an image of
// each page (https://platform.openai.com/docs/guides/pdf-files,
// https://docs.anthropic.com/en/docs/build-with-claude/pdf-support: 1,500 to 3,000 a page).
const (
	pageBytes  = 50_000
	pageTokens = 2_000
)

// file estimates the tokens of a file.
func (s *modelCounter) file(m media) int {
	switch {
	case m.data == "":
		return pageTokens
	case strings.HasPrefix(m.mime, "text/"):
		return m.bytes()/4 + 1
	}
	return (m.bytes() + pageBytes - 1) / pageBytes * pageTokens
}

// decodeHead decodes the beginning of base64 of either alphabet, with or without line
// breaks, up to n bytes. It stops at anything that is not base64.
func decodeHead(data string, n int) []byte {
	alphabet := base64.RawStdEncoding
	if strings.ContainsAny(headOf(data, 2*n), "-_") {
		alphabet = base64.RawURLEncoding
	}
	out := make([]byte, min(n, len(data)))
	got, _ := io.ReadFull(base64.NewDecoder(alphabet, strings.NewReader(strings.TrimRight(data, "="))), out) // what was decoded before an error is used
	return out[:got]
}
