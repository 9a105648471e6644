package count

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // the same
	_ "image/png"  // the same
	"math"
	"slices"
	"strings"
)

// vision is how a family of models counts the tokens of an image.
//
// Sources: https://platform.openai.com/docs/guides/images-vision (tiles, patches
// and their budgets; multipliers of 1.2 as reported by usage, not documented),
// https://docs.anthropic.com/en/docs/build-with-claude/vision,
// https://ai.google.dev/gemini-api/docs/tokens.
type vision struct {
	prefix string // of the model's name; "" is every other model

	// Tiles: tokens per image, and per tile of 512 pixels after scaling the longest side
	// to 2048 and the shortest to 768 pixels. With base 0, tiles are of 768 pixels.
	base, tile int

	// Patches: pixels per side; maximum number for each detail (0: no limit); longest
	// edge in pixels at detail high (0: any); tokens per patch.
	side                 int
	high, auto, original int
	edge                 int
	perPatch             float64

	// flat is the tokens of any image.
	flat int
}

// visions are the rules; the first matching prefix applies.
var visions = []vision{
	{prefix: "gpt-4o-mini", base: 2833, tile: 5667},
	{prefix: "gpt-4.1-mini", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.62},
	{prefix: "gpt-4.1-nano", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 2.46},
	{prefix: "gpt-4", base: 85, tile: 170},
	{prefix: "chatgpt-4o", base: 85, tile: 170},
	{prefix: "o4-mini", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.72},
	{prefix: "o1", base: 75, tile: 150},
	{prefix: "o3", base: 75, tile: 150},
	{prefix: "computer-use", base: 65, tile: 129},
	{prefix: "gpt-5-mini", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.62},
	{prefix: "gpt-5-nano", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 2.46},
	{prefix: "gpt-5-codex", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.2},
	{prefix: "gpt-5.1-codex", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.2},
	{prefix: "gpt-5.2", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.2},
	{prefix: "gpt-5.3", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.2},
	{prefix: "gpt-5.4-mini", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 1.62},
	{prefix: "gpt-5.4-nano", side: 32, high: 1536, auto: 1536, original: 1536, edge: 2048, perPatch: 2.46},
	{prefix: "gpt-5.4", side: 32, high: 2500, auto: 2500, original: 10_000, edge: 2048, perPatch: 1.2},
	{prefix: "gpt-5.5", side: 32, high: 2500, auto: 10_000, original: 10_000, edge: 2048, perPatch: 1.2},
	{prefix: "gpt-5.", side: 32, high: 2500, edge: 2048, perPatch: 1.2},
	{prefix: "gpt-5", base: 70, tile: 140},
	{prefix: "gpt-", side: 32, high: 2500, edge: 2048, perPatch: 1.2},
	{prefix: "claude-3", side: 28, high: 1568, auto: 1568, original: 1568, edge: 1568, perPatch: 1},
	{prefix: "claude-haiku-4", side: 28, high: 1568, auto: 1568, original: 1568, edge: 1568, perPatch: 1},
	{prefix: "claude-sonnet-4", side: 28, high: 1568, auto: 1568, original: 1568, edge: 1568, perPatch: 1},
	{prefix: "claude", side: 28, high: 4784, auto: 4784, original: 4784, edge: 2576, perPatch: 1},
	{prefix: "gemini-1", flat: 258},
	{prefix: "gemini-2", base: 0, tile: 258},
	{prefix: "gemini", flat: 1120},
	// Models that anyone may serve: patches as in Qwen-VL, whose budget is the largest.
	{side: 28, high: 16_384, auto: 16_384, original: 16_384, perPatch: 1},
}

// visionOf returns the rule for a model, by its name in lower case.
func visionOf(name string) vision {
	i := slices.IndexFunc(visions, func(v vision) bool { return strings.HasPrefix(name, v.prefix) }) // the last one has every name
	return visions[i]
}

// unknownSide is the assumed width and height, in pixels, of an image of unknown size.
const unknownSide = 2048

// mediaTokens returns the tokens of an image.
func (v vision) mediaTokens(m media) int {
	w, h, ok := imageSize(decodeHead(m.data, imageHead))
	if !ok {
		w, h = unknownSide, unknownSide
	}
	return v.tokens(w, h, m.detail)
}

// tokens returns the tokens of an image of w × h pixels.
func (v vision) tokens(w, h int, detail string) int {
	x, y := float64(max(w, 1)), float64(max(h, 1))
	switch {
	case v.flat > 0:
		return v.flat
	case v.tile > 0 && v.base == 0: // tiles of 768 pixels, small pictures are one
		if x <= 384 && y <= 384 {
			return v.tile
		}
		return int(min(math.Ceil(x/768)*math.Ceil(y/768), 64)) * v.tile
	case v.tile > 0:
		if detail == "low" {
			return v.base
		}
		if longest := max(x, y); longest > 2048 {
			x, y = x*2048/longest, y*2048/longest
		}
		if shortest := min(x, y); shortest > 768 {
			x, y = x*768/shortest, y*768/shortest
		}
		return v.base + v.tile*int(math.Ceil(x/512)*math.Ceil(y/512))
	}
	budget, edge := v.auto, 0
	switch detail {
	case "low":
		budget, edge = 256, 512
	case "high":
		budget = v.high
	case "original":
		budget = v.original
	}
	if edge == 0 && budget == v.high {
		edge = v.edge
	}
	return int(math.Ceil(float64(v.patches(x, y, budget, edge)) * v.perPatch))
}

// patches returns the number of patches that cover an image after scaling it into the
// budget, as OpenAI documents it.
func (v vision) patches(x, y float64, budget, edge int) int {
	side := float64(v.side)
	if longest := max(x, y); edge > 0 && longest > float64(edge) {
		x, y = math.Floor(x*float64(edge)/longest), math.Floor(y*float64(edge)/longest)
		x, y = max(x, 1), max(y, 1)
	}
	n := math.Ceil(x/side) * math.Ceil(y/side)
	if budget == 0 || n <= float64(budget) {
		return int(min(n, 1<<24))
	}
	shrink := math.Sqrt(side * side * float64(budget) / (x * y))
	fx, fy := x*shrink/side, y*shrink/side
	if fit := min(math.Floor(fx)/fx, math.Floor(fy)/fy); fit > 0 {
		shrink *= fit
	}
	n = math.Ceil(math.Floor(x*shrink)/side) * math.Ceil(math.Floor(y*shrink)/side)
	return int(max(1, min(n, float64(budget))))
}

// imageHead is how many bytes of an image are searched for its size: in a JPEG it comes
// after the camera's metadata.
const imageHead = 256 << 10

// imageSize returns width and height in pixels of a PNG, JPEG, GIF or WebP from its beginning.
func imageSize(head []byte) (w, h int, ok bool) {
	if len(head) >= 30 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		w, h = webpSize(head)
	} else if c, _, err := image.DecodeConfig(bytes.NewReader(head)); err == nil {
		w, h = c.Width, c.Height
	}
	const most = 1 << 20
	return w, h, w > 0 && h > 0 && w <= most && h <= most
}

// webpSize reads the size of the three kinds of WebP (RFC 9649).
func webpSize(head []byte) (w, h int) {
	le := binary.LittleEndian
	switch string(head[12:16]) {
	case "VP8 ":
		if string(head[23:26]) == "\x9d\x01\x2a" {
			return int(le.Uint16(head[26:]) & 0x3fff), int(le.Uint16(head[28:]) & 0x3fff)
		}
	case "VP8L":
		if head[20] == 0x2f {
			n := le.Uint32(head[21:])
			return int(n&0x3fff) + 1, int(n>>14&0x3fff) + 1
		}
	case "VP8X":
		return int(le.Uint32(head[23:])>>8) + 1, int(le.Uint32(head[26:])>>8) + 1
	}
	return 0, 0
}
