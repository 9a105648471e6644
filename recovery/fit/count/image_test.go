package count

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// encodedImage returns an image of a size in a format.
func encodedImage(t testing.TB, kind string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black})
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, img)
	case "gif":
		err = gif.Encode(&b, img, nil)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp returns the beginning of a WebP of each kind (RFC 9649).
func webp(kind string, w, h int) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"), kind...)
	b = append(b, 10, 0, 0, 0)
	switch kind {
	case "VP8 ":
		b = append(b, 0x10, 0, 0, 0x9d, 0x01, 0x2a)
		b = binary.LittleEndian.AppendUint16(b, uint16(w)|1<<14) // the upper bits are a scale
		return binary.LittleEndian.AppendUint16(b, uint16(h))
	case "VP8L":
		b = binary.LittleEndian.AppendUint32(append(b, 0x2f), uint32(w-1)|uint32(h-1)<<14)
		return append(b, 0, 0, 0, 0, 0)
	}
	b = append(b, 0, 0, 0, 0)
	return append(b, byte(w-1), byte((w-1)>>8), byte((w-1)>>16), byte(h-1), byte((h-1)>>8), byte((h-1)>>16))
}

func TestImageSize(t *testing.T) {
	for name, head := range map[string][]byte{
		"png": encodedImage(t, "png", 1023, 77), "gif": encodedImage(t, "gif", 1023, 77), "jpeg": encodedImage(t, "jpeg", 1023, 77),
		"webp lossy": webp("VP8 ", 1023, 77), "webp lossless": webp("VP8L", 1023, 77), "webp extended": webp("VP8X", 1023, 77),
	} {
		if w, h, ok := imageSize(head); w != 1023 || h != 77 || !ok {
			t.Errorf("%s: %d × %d, %v", name, w, h, ok)
		}
		// A truncated image gives the right size or none.
		for n := range min(len(head), 700) {
			if w, h, ok := imageSize(head[:n]); ok && (w != 1023 || h != 77) {
				t.Errorf("%s: cut at %d: %d × %d", name, n, w, h)
			}
		}
	}
	// A camera's metadata come before the size.
	photo := encodedImage(t, "jpeg", 640, 480)
	note := append([]byte{0xff, 0xe1, 0xff, 0xff}, make([]byte, 0xfffd)...)
	photo = append(append(append([]byte{}, photo[:2]...), append(note, note...)...), photo[2:]...)
	if w, h, ok := imageSize(photo); w != 640 || h != 480 || !ok {
		t.Errorf("with notes: %d × %d, %v", w, h, ok)
	}
	for _, bad := range []string{"", "GIF89a\x00\x00\x00\x00", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\xff\xff\xff\xff\x00\x00\x00\x01", "<svg width='9'/>",
		"\xff\xd8\xff\xe1\x00\x00\xff\xe1\x00\x00", "\xff\xd8\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if w, h, ok := imageSize([]byte(bad)); ok {
			t.Errorf("%q: %d × %d", bad, w, h)
		}
	}
}

// Tokens of images as OpenAI's guide states them, and as others measured them.
func TestImagePrices(t *testing.T) {
	tests := []struct {
		model, detail string
		w, h, want    int
	}{
		{"gpt-4o", "high", 1024, 1024, 765},
		{"gpt-4o", "", 2048, 4096, 1105},
		{"gpt-4o", "low", 4096, 8192, 85},
		{"gpt-4o-2024-08-06", "high", 128, 64, 255},
		{"gpt-4.1", "auto", 1024, 1024, 765},
		{"gpt-4o-mini", "low", 10, 10, 2833},
		{"o3", "high", 128, 64, 225},
		{"o1", "low", 128, 64, 75},
		{"gpt-5", "high", 1024, 1024, 630},
		{"gpt-4.1-mini", "", 1024, 1024, 1659},     // 1,024 patches
		{"gpt-4.1-mini", "high", 1800, 2400, 2353}, // 1,452 patches
		{"gpt-4.1-mini", "", 4000, 1474, 2489},     // billed as 1,536 patches
		{"gpt-4.1-mini", "", 128, 64, 13},
		{"gpt-5.2", "", 1280, 720, 1104},
		{"gpt-5.5", "auto", 3840, 2160, 9792},
		{"claude-sonnet-4-5", "", 1024, 1024, 1369},
		{"gemini-2.5-pro", "", 300, 384, 258},
		{"gemini-2.5-pro", "", 1024, 700, 516},
		{"qwen2.5-vl", "", 280, 560, 200},
	}
	for _, tt := range tests {
		v := visionOf(tt.model)
		if got := v.tokens(tt.w, tt.h, tt.detail); got != tt.want {
			t.Errorf("%s %q %d × %d: %d tokens, want %d", tt.model, tt.detail, tt.w, tt.h, got, tt.want)
		}
	}
}

// The tokens of an image are within limits for all sizes, and at most those of its full detail.
func TestImagePricesAreBounded(t *testing.T) {
	sides := []int{1, 31, 32, 33, 383, 385, 768, 2047, 2049, 5000, 1 << 14}
	for _, v := range visions {
		for _, w := range sides {
			for _, h := range sides {
				most := max(v.tokens(w, h, "original"), v.tokens(w, h, "high"), v.tokens(w, h, ""))
				for _, detail := range []string{"", "low", "high", "auto", "original", "x"} {
					n := v.tokens(w, h, detail)
					if n < 1 || n > 1<<20 || n > most && detail != "low" {
						t.Fatalf("%q: %d × %d %q costs %d, with all detail %d", v.prefix, w, h, detail, n, most)
					}
				}
			}
		}
	}
}

func TestDecodeHead(t *testing.T) {
	data := encodedImage(t, "jpeg", 300, 200)
	for name, text := range map[string]string{
		"standard": base64.StdEncoding.EncodeToString(data), "raw": base64.RawStdEncoding.EncodeToString(data),
		"url":   base64.URLEncoding.EncodeToString(data),
		"lines": string(bytes.Join(bytes.SplitAfter([]byte(base64.StdEncoding.EncodeToString(data)), []byte("A")), []byte("\r\n"))),
	} {
		for _, n := range []int{1, 2, 3, 10, 100, len(data), len(data) + 5} {
			if got := decodeHead(text, n); !bytes.Equal(got, data[:min(n, len(data))]) {
				t.Errorf("%s: %d bytes: got %d that differ", name, n, len(got))
			}
		}
	}
	if got := decodeHead("AAAA!AAAA", 100); len(got) != 3 {
		t.Errorf("what is not base64 does not end it: %d bytes", len(got))
	}
}

func FuzzImageSize(f *testing.F) {
	for _, kind := range []string{"png", "gif", "jpeg"} {
		f.Add(encodedImage(f, kind, 40, 30))
	}
	for _, kind := range []string{"VP8 ", "VP8L", "VP8X"} {
		f.Add(webp(kind, 40, 30))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		if w, h, ok := imageSize(head); ok && (w <= 0 || h <= 0 || w > 1<<20 || h > 1<<20) {
			t.Fatalf("%d × %d", w, h)
		}
		m := media{data: string(head)}
		for _, v := range visions {
			if n := v.mediaTokens(m); n < 1 {
				t.Fatalf("%q: %d tokens", v.prefix, n)
			}
		}
	})
}
